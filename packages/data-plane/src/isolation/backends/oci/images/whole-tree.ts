import { createHash } from 'node:crypto'
import { closeSync, openSync, readdirSync, readFileSync, readSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { z } from 'zod'
import { makeDirectory } from './image.ts'

const LIST = 'files.json'
/** Of larger files only the ends are hashed: all of Node would cost half a second at every start. */
const HASHED_BYTES = 16 * 1024 * 1024
const END_BYTES = 64 * 1024

/** By path: how large a file is, and the SHA-256 of what is hashed of it. */
const fileList = z.record(z.string(), z.strictObject({ bytes: z.int(), sha256: z.string().nullable() }))
type FileList = z.infer<typeof fileList>

/** Writes down what is in a tree, so that damage shows later. */
export function sealTree(dir: string): void {
  writeFileSync(join(dir, LIST), JSON.stringify(listOf(dir)))
}

/** The files that are not as `sealTree` saw them; `unknown` when its own list is damaged. */
export function damagedFiles(dir: string): readonly string[] | 'unknown' {
  const sealed = readList(dir)
  if (!sealed) return 'unknown'
  return Object.entries(sealed)
    .filter(([path, known]) => JSON.stringify(describe(join(dir, path))) !== JSON.stringify(known))
    .map(([path]) => path)
}

/** Takes the named files of another tree, each in one step: a sandbox that uses the tree sees the old file or the new one. */
export function takeFrom(fresh: string, dir: string, paths: readonly string[] | 'unknown'): void {
  const all = paths === 'unknown' ? [...Object.keys(listOf(fresh)), LIST] : paths
  for (const path of all) {
    makeDirectory(dirname(join(dir, path)))
    renameSync(join(fresh, path), join(dir, path))
  }
}

function listOf(dir: string): FileList {
  const paths = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
  return Object.fromEntries(paths.filter((path) => path !== LIST).map((path) => [path, describe(join(dir, path))]))
}

function describe(path: string): FileList[string] {
  try {
    const { size } = statSync(path)
    const bytes = size <= HASHED_BYTES ? readFileSync(path) : readEnds(path, size)
    return { bytes: size, sha256: createHash('sha256').update(bytes).digest('hex') }
  } catch {
    // Missing or unreadable: equal to no file that was whole.
    return { bytes: 0, sha256: null }
  }
}

function readEnds(path: string, size: number): Buffer {
  const fd = openSync(path, 'r')
  const ends = Buffer.alloc(2 * END_BYTES)
  try {
    readSync(fd, ends, 0, END_BYTES, 0)
    readSync(fd, ends, END_BYTES, END_BYTES, size - END_BYTES)
    return ends
  } finally {
    closeSync(fd)
  }
}

function readList(dir: string): FileList | undefined {
  try {
    return fileList.parse(JSON.parse(readFileSync(join(dir, LIST), 'utf8')))
  } catch {
    // Missing or damaged is the same: every file is taken again.
    return undefined
  }
}
