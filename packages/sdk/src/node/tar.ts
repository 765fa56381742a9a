import { createReadStream, type Stats } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AirlockError } from '../errors.ts'

const BLOCK = 512
const END_BLOCKS = 2
/** What the size field of a plain header can say, in octal. */
const MOST_BYTES = 8 ** 11 - 1

/**
 * A directory as a tar, streamed: files, directories and symbolic links with their modes and times, in the order of
 * their names, owned by root. What is neither (a socket, a device) has no place in an image and is left out.
 */
export async function* tarDirectory(directory: string): AsyncGenerator<Uint8Array> {
  yield* entriesOf(directory, '')
  yield new Uint8Array(END_BLOCKS * BLOCK)
}

async function* entriesOf(directory: string, prefix: string): AsyncGenerator<Uint8Array> {
  const names = await readdir(directory)
  for (const name of names.toSorted()) {
    const path = join(directory, name)
    const entry = `${prefix}${name}`
    const found = await lstat(path)
    if (found.isDirectory()) {
      yield* header({ name: `${entry}/`, type: '5', size: 0, found })
      yield* entriesOf(path, `${entry}/`)
    } else if (found.isSymbolicLink())
      yield* header({ name: entry, type: '2', size: 0, found, target: await readlink(path) })
    else if (found.isFile()) {
      yield* header({ name: entry, type: '0', size: found.size, found })
      yield* content(path, found.size)
    }
  }
}

/** Exactly as many bytes as were announced, or none of the rest is of use. */
async function* content(path: string, size: number): AsyncGenerator<Uint8Array> {
  let left = size
  if (size > 0)
    for await (const chunk of readChunks(path, size)) {
      left -= chunk.length
      yield chunk
    }
  if (left !== 0)
    throw new AirlockError('invalid_request', `${path} changed while it was read.`, { hint: 'Import it again.' })
  if (size % BLOCK > 0) yield new Uint8Array(BLOCK - (size % BLOCK))
}

function readChunks(path: string, size: number): AsyncIterable<Buffer> {
  return createReadStream(path, { end: size - 1 })
}

interface Entry {
  readonly name: string
  readonly type: '0' | '2' | '5'
  readonly size: number
  readonly found: Stats
  readonly target?: string
}

/** A header, and one in the form of POSIX.1-2001 before it where names or sizes are too long for the plain one. */
function* header({ name, type, size, found, target = '' }: Entry): Generator<Uint8Array> {
  const long = [
    Buffer.byteLength(name) > 100 ? record('path', name) : '',
    Buffer.byteLength(target) > 100 ? record('linkpath', target) : '',
    size > MOST_BYTES ? record('size', String(size)) : '',
  ].join('')
  const mtime = Math.max(0, Math.floor(found.mtimeMs / 1000))
  if (long !== '') {
    const bytes = Buffer.from(long)
    yield block({ name: 'PaxHeader', type: 'x', size: bytes.length, mode: 0o644, mtime, target: '' })
    yield Buffer.concat([bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)])
  }
  yield block({ name, type, size: Math.min(size, MOST_BYTES), mode: found.mode & 0o7777, mtime, target })
}

/** `<length> <key>=<value>\n`, where the length counts itself. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`
  const bytes = Buffer.byteLength(rest)
  let length = bytes + String(bytes).length
  if (String(length).length > String(bytes).length) length = bytes + String(length).length
  return `${length}${rest}`
}

interface Fields {
  readonly name: string
  readonly type: string
  readonly size: number
  readonly mode: number
  readonly mtime: number
  readonly target: string
}

function block(fields: Fields): Uint8Array {
  const bytes = Buffer.alloc(BLOCK)
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, '0')}\0`
  const put = (text: string, at: number, width: number): number => Buffer.from(text).copy(bytes, at, 0, width)
  put(fields.name, 0, 100)
  put(octal(fields.mode, 8), 100, 8)
  put(octal(0, 8), 108, 8)
  put(octal(0, 8), 116, 8)
  put(octal(fields.size, 12), 124, 12)
  put(octal(fields.mtime, 12), 136, 12)
  put(' '.repeat(8), 148, 8)
  put(fields.type, 156, 1)
  put(fields.target, 157, 100)
  put('ustar\x0000', 257, 8)
  put('root', 265, 32)
  put('root', 297, 32)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 8)
  return bytes
}
