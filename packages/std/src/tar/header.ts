import { BLOCK } from './entry.ts'
import { damaged } from './tar-error.ts'

/** One header block as it is written; names and sizes may come from extended headers before it. */
export interface TarHeader {
  readonly name: Buffer
  readonly link: Buffer
  readonly type: string
  readonly mode: number
  readonly size: number
  readonly modifiedS: number
}

const USTAR = 'ustar\u000000'
const GNU = 'ustar  \0'

/** Undefined for a block of zeros. Fails closed: a block that is not a header is not guessed at. */
export function parseHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined
  if (sumOf(block) !== octal(block.subarray(148, 156))) throw damaged('a header has a wrong checksum')
  const magic = block.toString('latin1', 257, 265)
  if (magic !== USTAR && magic !== GNU) throw damaged('a header is neither ustar nor GNU')
  const prefix = magic === USTAR ? textOf(block.subarray(345, 500)) : Buffer.alloc(0)
  const name = textOf(block.subarray(0, 100))
  return {
    name: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]),
    link: textOf(block.subarray(157, 257)),
    type: block[156] === 0 ? '0' : String.fromCodePoint(block[156] ?? 0),
    mode: numberOf(block.subarray(100, 108)),
    size: numberOf(block.subarray(124, 136)),
    modifiedS: numberOf(block.subarray(136, 148)),
  }
}

/** The records of an extended header: `length key=value\n`, where the length counts all of it. */
export function parsePax(bytes: Buffer): ReadonlyMap<string, Buffer> {
  const records = new Map<string, Buffer>()
  for (let at = 0; at < bytes.length;) {
    const blank = bytes.indexOf(0x20, at)
    const digits = blank < 0 ? '' : bytes.toString('latin1', at, blank)
    const length = /^[1-9]\d{0,7}$/u.test(digits) ? Number(digits) : 0
    const record = bytes.subarray(blank + 1, at + length)
    const equals = record.indexOf(0x3d)
    if (at + length > bytes.length || equals <= 0 || record.at(-1) !== 0x0a)
      throw damaged('an extended header cannot be read')
    const key = record.toString('latin1', 0, equals)
    if (records.has(key)) throw damaged(`an extended header gives ${key.slice(0, 40)} twice`)
    records.set(key, record.subarray(equals + 1, -1))
    at += length
  }
  return records
}

/** The field of the checksum itself counts as blanks. */
export function sumOf(block: Buffer): number {
  let sum = 0
  for (let at = 0; at < BLOCK; at++) sum += at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0)
  return sum
}

function textOf(field: Buffer): Buffer {
  const end = field.indexOf(0)
  return end < 0 ? field : field.subarray(0, end)
}

/** Octal, or base 256 where octal is too short. Negative numbers are refused. */
function numberOf(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0) return octal(field)
  if (field[0] !== 0x80) throw damaged('a number in a header cannot be read')
  const value = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0)
  if (!Number.isSafeInteger(value)) throw damaged('a number in a header is too large')
  return value
}

function octal(field: Buffer): number {
  const digits = field.toString('latin1').replaceAll(/^[ \0]+|[ \0]+$/gu, '')
  if (digits === '') return 0
  if (!/^[0-7]+$/u.test(digits)) throw damaged('a number in a header cannot be read')
  return Number.parseInt(digits, 8)
}
