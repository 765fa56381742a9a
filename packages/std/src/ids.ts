import { randomBytes, randomUUID } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** A new id: `<prefix>_` and 26 base-32 characters, 48 bits of time then 80 random bits, so ids sort by age. */
export function newId(prefix: string, now: number = Date.now()): string {
  let time = ''
  let rest = now
  for (let i = 0; i < 10; i++) {
    time = ALPHABET[rest % 32] + time
    rest = Math.floor(rest / 32)
  }
  return `${prefix}_${time}${randomTail()}`
}

/** 16 characters. A UUID costs a third of so many random bytes; its ends are random, its middle is not. */
function randomTail(): string {
  const uuid = randomUUID()
  const digits = `${uuid.slice(0, 8)}${uuid.slice(24)}`
  let text = ''
  for (let at = 0; at < digits.length; at += 5) {
    let bits = Number.parseInt(digits.slice(at, at + 5), 16)
    for (let i = 0; i < 4; i++) {
      text += ALPHABET[bits % 32]
      bits = Math.floor(bits / 32)
    }
  }
  return text
}

/** Random lower-case base-32 text, 5 bits a character. */
export function randomText(length: number): string {
  let text = ''
  for (const byte of randomBytes(length)) text += ALPHABET[byte % 32]
  return text
}
