import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The commands that a page of `docs` shows with this text in them, with other places in place of those that it names. */
export function documentedCommands(page: string, text: string, places: Readonly<Record<string, string>>): string {
  const found = documentedCode(page, 'sh', text)
  return Object.entries(places).reduce((commands, [from, to]) => commands.replaceAll(from, to), found)
}

/** The block of code in this language that a page of `docs` shows with this text in it. */
export function documentedCode(page: string, language: string, text: string): string {
  const path = fileURLToPath(new URL(`../../docs/${page}`, import.meta.url))
  const blocks = readFileSync(path, 'utf8').matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gmsu'))
  const found = [...blocks].map(([, code = '']) => code).find((code) => code.includes(text))
  if (found === undefined) throw new TypeError(`docs/${page} shows no ${language} with ${text}`)
  return found
}
