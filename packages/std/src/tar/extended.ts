import { MAX_OCTAL_SIZE } from './entry.ts'
import { parsePax, type TarHeader } from './header.ts'
import { damaged } from './tar-error.ts'

/** Fields that extended headers give for the next entry. */
export interface Extended {
  name?: Buffer
  link?: Buffer
  size?: number
  modifiedMs?: number
}

export const MAX_EXTENDED_BYTES = 64 * 1024

/** Keys without effect here: owners and the other times are never applied. */
const IGNORED: ReadonlySet<string> = new Set(['atime', 'ctime', 'comment', 'gid', 'gname', 'uid', 'uname'])
/** Extensions of these vendors only describe; the exceptions below change how content is read. */
const DESCRIBING = /^(?:SCHILY\.(?!realsize)|LIBARCHIVE\.|APPLE\.|RHT\.|MSWINDOWS\.)/u

/** Fails closed: a field that two readers could take differently is an error. Answers the comment of a global header. */
export function takeExtended(header: TarHeader, bytes: Buffer, extended: Extended): string | undefined {
  if (header.type === 'g') return commentOf(parsePax(bytes))
  if (header.type === 'L') setOnce(extended, 'name', withoutNul(bytes))
  else if (header.type === 'K') setOnce(extended, 'link', withoutNul(bytes))
  else takePax(parsePax(bytes), extended)
  return undefined
}

/** The size of an entry. An extended one is believed only where the plain field cannot hold it. */
export function sizeOf(header: TarHeader, extended: Extended): number {
  const { size } = extended
  if (size === undefined || size === header.size) return header.size
  if (size <= MAX_OCTAL_SIZE) throw damaged('an entry has two sizes')
  return size
}

function takePax(records: ReadonlyMap<string, Buffer>, extended: Extended): void {
  for (const [key, value] of records) {
    if (key === 'path') setOnce(extended, 'name', value)
    else if (key === 'linkpath') setOnce(extended, 'link', value)
    else if (key === 'size') setOnce(extended, 'size', sizeFrom(value))
    else if (key === 'mtime') setOnce(extended, 'modifiedMs', timeFrom(value))
    else if (!IGNORED.has(key) && !DESCRIBING.test(key))
      throw damaged(`an extended header has the field ${JSON.stringify(key.slice(0, 40))}`)
  }
}

function commentOf(records: ReadonlyMap<string, Buffer>): string | undefined {
  for (const key of records.keys()) if (key !== 'comment') throw damaged('a global header has more than a comment')
  return records.get('comment')?.toString()
}

function setOnce<K extends keyof Extended>(extended: Extended, field: K, value: NonNullable<Extended[K]>): void {
  if (extended[field] !== undefined) throw damaged('an entry has two extended headers')
  Object.assign(extended, { [field]: value })
}

/** GNU ends a long name with NUL. */
function withoutNul(bytes: Buffer): Buffer {
  return bytes.at(-1) === 0 ? bytes.subarray(0, -1) : bytes
}

function sizeFrom(value: Buffer): number {
  const text = value.toString('latin1')
  const size = /^\d{1,16}$/u.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(size)) throw damaged('a size cannot be read')
  return size
}

function timeFrom(value: Buffer): number {
  const text = value.toString('latin1')
  if (!/^-?\d{1,12}(?:\.\d{1,18})?$/u.test(text)) throw damaged('a time cannot be read')
  return Number(text) * 1000
}
