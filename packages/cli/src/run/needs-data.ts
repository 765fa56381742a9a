import { DATA_MODULES } from '@airlock/contract/defaults'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const MODULES: ReadonlySet<string> = new Set(DATA_MODULES)
const IMPORTS = [
  /^[\t ]*from[\t ]+(\w+)/gmu,
  /^[\t ]*%(\w+)[\t ]+inline/gmu,
  /(?:__import__|import_module)\([\t ]*['"](\w+)/gu,
]
const IMPORT_LISTS = /(?:^|[;:])[\t ]*import[\t ]+([^;#\n]+)/gmu

/** Of what comes along: enough for a project, and read in a moment. */
const MOST = { files: 200, bytes: 256 * 1024 }

/** Whether Python code, or a file that is copied in beside it, imports what only the template `data` has. */
export function needsData(code: string, beside: readonly string[] = []): boolean {
  return importsOf(code).some((name) => MODULES.has(name)) || pythonIn(beside).some((text) => needsData(text))
}

function importsOf(code: string): readonly string[] {
  const names = IMPORTS.flatMap((pattern) => [...code.matchAll(pattern)].map(([, name = '']) => name))
  const lists = [...code.matchAll(IMPORT_LISTS)].flatMap(([, list = '']) => list.split(','))
  return [...names, ...lists.map((name) => /^\s*(\w+)/u.exec(name)?.[1] ?? '')]
}

function pythonIn(paths: readonly string[]): readonly string[] {
  const files = paths.flatMap((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory() !== true) return [path]
    return readdirSync(path).map((name) => join(path, name))
  })
  return files
    .filter((path) => path.endsWith('.py'))
    .slice(0, MOST.files)
    .flatMap((path) => {
      const found = lstatSync(path, { throwIfNoEntry: false })
      return found?.isFile() === true && found.size <= MOST.bytes ? [readFileSync(path, 'utf8')] : []
    })
}
