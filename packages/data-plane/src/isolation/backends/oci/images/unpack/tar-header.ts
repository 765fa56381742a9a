import { AirlockError } from '@airlock/contract'

export const BLOCK = 512

/** One header block, as it is written; long names and sizes may come from extended headers before it. */
export interface TarHeader {
  readonly name: Buffer
  readonly link: Buffer
  readonly type: string
  readonly mode: number
  readonly size: number
}

/** Undefined for a block of zeros, which ends an archive. Fails closed: what is not a header is not guessed at. */
export function parseHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined
  if (sumOf(block) !== octal(block.subarray(148, 156))) throw broken('a header whose sum is wrong')
  const isUstar = block.toString('latin1', 257, 263) === 'ustar\0'
  const prefix = isUstar ? text(block.subarray(345, 500)) : Buffer.alloc(0)
  const name = text(block.subarray(0, 100))
  return {
    name: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]),
    link: text(block.subarray(157, 257)),
    type: block[156] === 0 ? '0' : String.fromCodePoint(block[156] ?? 0),
    mode: number(block.subarray(100, 108)),
    size: number(block.subarray(124, 136)),
  }
}

/** The records of an extended header: `length key=value\n`, the length counting all of it. */
export function parsePax(bytes: Buffer): ReadonlyMap<string, Buffer> {
  const records = new Map<string, Buffer>()
  for (let at = 0; at < bytes.length;) {
    const blank = bytes.indexOf(0x20, at)
    const digits = blank < 0 ? '' : bytes.toString('latin1', at, blank)
    const length = /^\d{1,8}$/u.test(digits) ? Number(digits) : 0
    const record = bytes.subarray(blank + 1, at + length)
    const equals = record.indexOf(0x3d)
    if (at + length > bytes.length || equals <= 0 || record.at(-1) !== 0x0a) throw broken('an extended header')
    const key = record.toString('latin1', 0, equals)
    if (records.has(key)) throw broken('an extended header that says something twice')
    records.set(key, record.subarray(equals + 1, -1))
    at += length
  }
  return records
}

/** A size in an extended header is decimal. */
export function parseDecimal(bytes: Buffer): number {
  const value = /^\d{1,16}$/u.test(bytes.toString('latin1')) ? Number(bytes.toString('latin1')) : Number.NaN
  if (!Number.isSafeInteger(value)) throw broken('a size')
  return value
}

export function broken(what: string): AirlockError {
  return new AirlockError('template_invalid', `The archive is damaged: it has ${what} that cannot be read.`)
}

/** The field of the sum itself counts as blanks. */
function sumOf(block: Buffer): number {
  let sum = 0
  for (const [at, byte] of block.entries()) sum += at >= 148 && at < 156 ? 0x20 : byte
  return sum
}

function text(field: Buffer): Buffer {
  const end = field.indexOf(0)
  return end < 0 ? field : field.subarray(0, end)
}

/** Octal, or base 256 for what is too large for that. */
function number(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0) return octal(field)
  if (field[0] !== 0x80) throw broken('a number')
  const value = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0)
  if (!Number.isSafeInteger(value)) throw broken('a number')
  return value
}

function octal(field: Buffer): number {
  const digits = field.toString('latin1').replaceAll(/^[ \0]+|[ \0]+$/gu, '')
  if (digits === '') return 0
  if (!/^[0-7]+$/u.test(digits)) throw broken('a number')
  const value = Number.parseInt(digits, 8)
  if (!Number.isSafeInteger(value)) throw broken('a number')
  return value
}
