import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The commands that a page of `docs` shows with this text in them, with other places in place of those that it names. */
export function documentedCommands(page: string, text: string, places: Readonly<Record<string, string>>): string {
  const path = fileURLToPath(new URL(`../../docs/${page}`, import.meta.url))
  const blocks = readFileSync(path, 'utf8').matchAll(/^```sh\n(.*?)^```$/gmsu)
  const found = [...blocks].map(([, commands = '']) => commands).find((commands) => commands.includes(text))
  if (found === undefined) throw new TypeError(`docs/${page} shows no commands with ${text}`)
  return Object.entries(places).reduce((commands, [from, to]) => commands.replaceAll(from, to), found)
}
