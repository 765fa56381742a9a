import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { encodingsOf } from './encodings.ts'
import { Scrubber } from './scrubber.ts'

const KEY = 'sk-proj/9a+Zx=0123456789&~é'.replace('é', '!')
const encodings = encodingsOf(KEY)

/** Everything that goes out; undefined when the answer was cut. */
function scrub(pieces: readonly (Buffer | string)[]): string | undefined {
  const scrubber = new Scrubber(encodings)
  let out = ''
  try {
    for (const piece of pieces) out += scrubber.push(Buffer.from(piece)).toString('latin1')
    return out + scrubber.end().toString('latin1')
  } catch {
    return undefined
  }
}

const hexEscapes = (text: string, write: (hex: string) => string) =>
  [...Buffer.from(text)].map((byte) => write(byte.toString(16))).join('')

/** The key as programs send it back. */
const SENT = {
  'as it is': KEY,
  'in JSON': JSON.stringify({ error: `bad key ${KEY}` }),
  'in JSON of PHP': KEY.replaceAll('/', String.raw`\/`),
  'in JSON by numbers': hexEscapes(KEY, (hex) => String.raw`\u00${hex}`),
  'in JSON with one character by number': String.raw`{"k":"${KEY.replace('-', String.raw`\u002d`)}"}`,
  'in JSON with every second character by number': KEY.split('')
    .map((char, at) => (at % 2 ? String.raw`\u00${char.charCodeAt(0).toString(16)}` : char))
    .join(''),
  'in JSON in JSON with one character by number': JSON.stringify(KEY.replace('/', String.raw`\u002F`)),
  'in JSON of PHP with one character by number': KEY.replace('/', String.raw`\/`).replace('a', String.raw`\u0061`),
  'in base64 with one character by number': Buffer.from(KEY)
    .toString('base64')
    .replace('c', String.raw`\u0063`),
  'in a URL': `https://x/?key=${encodeURIComponent(KEY)}&y`,
  'in a URL, in small letters': encodeURIComponent(KEY).replaceAll(/%../g, (code) => code.toLowerCase()),
  'in a URL, all of it': hexEscapes(KEY, (hex) => `%${hex}`),
  'in hexadecimal': Buffer.from(KEY).toString('hex'),
  'in capital hexadecimal': Buffer.from(KEY).toString('hex').toUpperCase(),
  'in base64': Buffer.from(KEY).toString('base64'),
  'in base64 behind one byte': Buffer.from(`:${KEY}`).toString('base64'),
  'in base64 behind two bytes': Buffer.from(`u:${KEY}`).toString('base64'),
  'in base64 behind many': Buffer.from(`Authorization: Bearer ${KEY}\r\nx: y`).toString('base64'),
  'in base64url': Buffer.from(`{"k":"${KEY}"}`).toString('base64url'),
}

describe.each(Object.entries(SENT))('a key %s', (_how, sent) => {
  const text = `data: before ${sent} after`

  it('is cut wherever it is cut, with no byte of it', () => {
    for (let at = 0; at <= text.length; at += 1) expect(scrub([text.slice(0, at), text.slice(at)])).toBeUndefined()
  })

  it('is cut when it comes byte by byte, and nothing of it went out', () => {
    const scrubber = new Scrubber(encodings)
    let out = ''
    expect(() => {
      for (const byte of Buffer.from(text)) out += scrubber.push(Buffer.from([byte])).toString('latin1')
    }).toThrow(expect.objectContaining({ code: 'upstream_leaked_key' }))
    expect(text.startsWith(out)).toBe(true)
    for (const one of encodings) expect(out).not.toContain(one.toString('latin1').slice(0, 12))
  })
})

describe('an answer without the key', () => {
  it('goes out as it came, in whatever pieces', () => {
    const bytes = Buffer.concat([randomBytes(5_000), Buffer.from(KEY.slice(0, -1)), randomBytes(5_000)])
    for (const size of [1, 7, 1000, 65_536]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      )
      expect(scrub(pieces)).toBe(bytes.toString('latin1'))
    }
  })

  it('goes out at once, but for what may be the beginning of the key', () => {
    const scrubber = new Scrubber(encodings)
    expect(scrubber.push(Buffer.from('data: {"a":1}\n\n')).toString()).toBe('data: {"a":1}\n\n')
    expect(scrubber.push(Buffer.from(`x ${KEY.slice(0, 5)}`)).toString()).toBe('x ')
    expect(scrubber.push(Buffer.from('!')).toString()).toBe(`${KEY.slice(0, 5)}!`)
    expect(scrubber.push(Buffer.from(KEY.slice(0, -1))).toString()).toBe('')
    expect(scrubber.end().toString()).toBe(KEY.slice(0, -1))
  })

  it('may hold any escape, in whatever pieces', () => {
    const escapes = String.raw`\n \u00e4 \u12 \\ \" \/ \u002d ${'\\'.repeat(100)} ${JSON.stringify(KEY.slice(0, 9))}\u0041 \u`
    for (let at = 0; at <= escapes.length; at += 1)
      expect(scrub([escapes.slice(0, at), escapes.slice(at)])).toBe(escapes)
    expect(scrub(escapes.split(''))).toBe(escapes)
  })

  it('is held back no longer than one key with the longest escapes', () => {
    const scrubber = new Scrubber(encodings)
    const text = `${KEY.slice(0, 5)}${'\\'.repeat(100_000)}`
    expect(scrubber.push(Buffer.from(text)).length).toBeGreaterThan(text.length - 100)
  })

  it('may hold all but one byte of the key, again and again', () => {
    const text = KEY.slice(0, -1).repeat(50) + KEY.slice(1)
    expect(scrub(text.split(''))).toBe(text)
  })
})
