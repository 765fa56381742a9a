import { readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { UsageError } from '../usage.ts'

export type Ignore = (path: string, kind: 'file' | 'directory' | 'symlink') => boolean

/** Left out of every directory that is copied, unless `--all` is given. */
const USUAL: ReadonlySet<string> = new Set(['.git', 'node_modules'])
const FILE = '.airlockignore'
const MOST_BYTES = 64 * 1024

/** What a copy of a local directory leaves out: `.git`, `node_modules`, and what its `.airlockignore` names. */
export async function ignoreOf(directory: string, all: boolean): Promise<Ignore | undefined> {
  if (all) return undefined
  const patterns = parsePatterns(await readIgnoreFile(join(directory, FILE)))
  // Somebody who names such a directory wants what is in it.
  const isMeant = isUsual(resolve(directory))
  return (path, kind) => (!isMeant && isUsual(path)) || patterns.some((one) => one(path, kind))
}

/** What a copy out of a sandbox leaves out. */
export function isUsual(path: string): boolean {
  return USUAL.has(basename(path))
}

/**
 * One pattern a line, as in `.gitignore`: `*` and `?` within a name, `**` across them, a slash at the end for directories
 * alone, any other slash to bind it to the directory of the file. Fails closed: a line that begins with `!` is refused.
 */
export function parsePatterns(text: string): readonly Ignore[] {
  return text
    .split(/\r?\n/u)
    .map((line) => line.trimEnd())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(parsePattern)
}

function parsePattern(line: string): Ignore {
  if (line.startsWith('!'))
    throw new UsageError(`${FILE} has the line "${line}": "!" is not understood.`, 'Name only what to leave out.')
  const onlyDirectories = line.endsWith('/')
  const body = line.replace(/\/+$/u, '')
  const isBound = body.includes('/')
  const pattern = new RegExp(`^${isBound ? '' : '(?:.*/)?'}${toSource(body.replace(/^\//u, ''))}$`, 'su')
  return (path, kind) => (!onlyDirectories || kind === 'directory') && pattern.test(path)
}

function toSource(body: string): string {
  return body
    .split(/(\*\*\/|\*\*|\*|\?)/u)
    .map((part) => WILD[part] ?? part.replaceAll(/[$()*+.?[\\\]^{|}]/gu, String.raw`\$&`))
    .join('')
}

const WILD: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' }

async function readIgnoreFile(path: string): Promise<string> {
  try {
    const text = await readFile(path, 'utf8')
    if (Buffer.byteLength(text) > MOST_BYTES) throw new UsageError(`${path} is too long.`, 'At most 64 KiB are read.')
    return text
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
