import { randomBytes, randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** All of two characters, by ten bits. */
const PAIRS = Array.from({ length: 1024 }, (_, bits) => `${ALPHABET[bits >> 5]}${ALPHABET[bits % 32]}`)

/** Random bits for many ids at once: to fetch them is what costs. Each is used once. */
const POOL = new Uint16Array(1024)
let used = POOL.length

/** A new id: `<prefix>_` and 26 base-32 characters, 48 bits of time then 80 random bits, so ids sort by age. */
export function newId(prefix: string, now: number = Date.now()): string {
  let text = ''
  for (let i = 0, rest = now; i < 5; i++, rest = Math.floor(rest / 1024)) text = PAIRS[rest % 1024] + text
  for (let i = 0; i < 8; i++) text += PAIRS[randomBits() % 1024]
  return `${prefix}_${text}`
}

/** 16 of them. */
function randomBits(): number {
  if (used === POOL.length) {
    randomFillSync(POOL)
    used = 0
  }
  return POOL[used++] ?? 0
}

/** Random lower-case base-32 text, 5 bits a character. */
export function randomText(length: number): string {
  let text = ''
  for (const byte of randomBytes(length)) text += ALPHABET[byte % 32]
  return text
}
