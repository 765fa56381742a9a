import { BLOCK, MAX_OCTAL_SIZE, paddingOf, type TarEntry } from './entry.ts'
import { sumOf } from './header.ts'

/** The blocks before the content of an entry: its header, and an extended one where a field is too long for it. */
export function entryHeader(entry: TarEntry): Buffer {
  const name = entry.kind === 'directory' ? `${entry.path}/` : entry.path
  const long = [
    Buffer.byteLength(name) > 100 ? record('path', name) : '',
    Buffer.byteLength(entry.target) > 100 ? record('linkpath', entry.target) : '',
    entry.size > MAX_OCTAL_SIZE ? record('size', String(entry.size)) : '',
  ].join('')
  const plain = block({ ...entry, name, type: TYPES[entry.kind] })
  return long === '' ? plain : Buffer.concat([extended('x', long), plain])
}

/** What ends the content of an entry: its last block is filled up. */
export function entryPadding(size: number): Buffer {
  return Buffer.alloc(paddingOf(size))
}

/** A comment that readers of tar ignore. */
export function archiveComment(text: string): Buffer {
  return extended('g', record('comment', text))
}

export function archiveEnd(): Buffer {
  return Buffer.alloc(2 * BLOCK)
}

const TYPES = { file: '0', directory: '5', symlink: '2' } as const

function extended(type: 'x' | 'g', text: string): Buffer {
  const size = Buffer.byteLength(text)
  const header = block({ name: 'PaxHeader', type, size, mode: 0o644, modifiedMs: 0, target: '' })
  return Buffer.concat([header, Buffer.from(text), Buffer.alloc(paddingOf(size))])
}

/** `<length> <key>=<value>\n`, where the length counts itself. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`
  const bytes = Buffer.byteLength(rest)
  let length = bytes + String(bytes).length
  if (String(length).length > String(bytes).length) length = bytes + String(length).length
  return `${length}${rest}`
}

interface Fields extends Pick<TarEntry, 'size' | 'mode' | 'modifiedMs' | 'target'> {
  readonly name: string
  readonly type: string
}

function block(fields: Fields): Buffer {
  const bytes = Buffer.alloc(BLOCK)
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, '0')}\0`
  const put = (text: string, at: number, width: number): number => Buffer.from(text).copy(bytes, at, 0, width)
  const modifiedS = Math.min(Math.max(0, Math.floor(fields.modifiedMs / 1000)), MAX_OCTAL_SIZE)
  put(fields.name, 0, 100)
  put(octal(fields.mode & 0o777, 8), 100, 8)
  put(octal(0, 8), 108, 8)
  put(octal(0, 8), 116, 8)
  put(octal(Math.min(fields.size, MAX_OCTAL_SIZE), 12), 124, 12)
  put(octal(modifiedS, 12), 136, 12)
  put(fields.type, 156, 1)
  put(fields.target, 157, 100)
  put('ustar\u000000', 257, 8)
  put(`${sumOf(bytes).toString(8).padStart(6, '0')}\0 `, 148, 8)
  return bytes
}
