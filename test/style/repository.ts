import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const NOT_OURS = new Set(['node_modules', 'dist', '.git', 'coverage', '.airlock', '__pycache__'])

export interface SourceFile {
  /** Relative to the repository. */
  readonly path: string
  readonly text: string
}

/** Files of the repository whose path matches. */
export function filesMatching(pattern: RegExp): readonly SourceFile[] {
  return walk(ROOT)
    .map((path) => relative(ROOT, path))
    .filter((path) => pattern.test(path))
    .toSorted()
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

/** What ships: the sources of our packages without their tests. */
export function productSources(): readonly SourceFile[] {
  return filesMatching(/^packages\/[^/]+\/(?:src|bin)\/.*\.[jt]sx?$/).filter(({ path }) => !TEST_CODE.test(path))
}

const TEST_CODE = /\.test\.ts$|\/fixtures\/|\/testing\/|\/conformance\.ts$/

/** `path:line` of every match, for messages that can be clicked. */
export function linesMatching(files: readonly SourceFile[], pattern: RegExp): readonly string[] {
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  )
}

function walk(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return []
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return walk(path)
    return entry.isFile() ? [path] : []
  })
}
