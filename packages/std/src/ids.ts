import { randomBytes } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** A new id: `<prefix>_` and 26 base-32 characters, 48 bits of time then 80 random bits, so ids sort by age. */
export function newId(prefix: string, now: number = Date.now()): string {
  let time = ''
  let rest = now
  for (let i = 0; i < 10; i++) {
    time = ALPHABET[rest % 32] + time
    rest = Math.floor(rest / 32)
  }
  return `${prefix}_${time}${randomText(16)}`
}

/** Random lower-case base-32 text, 5 bits a character. */
export function randomText(length: number): string {
  let text = ''
  for (const byte of randomBytes(length)) text += ALPHABET[byte % 32]
  return text
}
