import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sanitizeLine, Sanitizer, sanitizeStyled } from './sanitize.ts'

function sanitize(...chunks: readonly (string | Uint8Array)[]): string {
  const sanitizer = new Sanitizer()
  const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk))
  return bytes.map((chunk) => sanitizer.push(chunk)).join('') + sanitizer.finish()
}

describe('Sanitizer', () => {
  it('shows what would steer a terminal', () => {
    expect(sanitize('\u001B[31mred\u001B[0m')).toBe('␛[31mred␛[0m')
    expect(sanitize('\u001B]52;c;ZXZpbA==\u0007')).toBe('␛]52;c;ZXZpbA==␇')
    expect(sanitize('a\u009Bb\u007F')).toBe(String.raw`a\x9bb␡`)
    expect(sanitize('\u202Egnp.exe')).toBe(String.raw`\u202egnp.exe`)
  })

  it('keeps line ends and tabs, and a carriage return only before a line feed', () => {
    expect(sanitize('a\tb\r\nc\n')).toBe('a\tb\r\nc\n')
    expect(sanitize('safe\rEVIL')).toBe('safe␍EVIL')
    expect(sanitize('a\r', '\nb\r')).toBe('a\r\nb␍')
  })

  it('keeps letters of any language, also when a chunk cuts one', () => {
    const bytes = Buffer.from('žluťoučký 你好 🙂')
    expect(sanitize(bytes.subarray(0, 2), bytes.subarray(2, 16), bytes.subarray(16))).toBe('žluťoučký 你好 🙂')
  })

  it('lets no control character through, whatever the bytes and however they are cut', () => {
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc
        .constantFrom('\u001B[2J', '\u009B', '\r', '\r\n', '\n', '\u202E', '\u001B]0;x\u0007')
        .map((s) => Buffer.from(s)),
    )
    fc.assert(
      fc.property(fc.array(hostile, { maxLength: 12 }), (chunks) => {
        const text = sanitize(...chunks)
        expect(text.replaceAll('\r\n', '').replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
        for (const byte of Buffer.from(text.replaceAll('\r\n', '\n')))
          expect(byte >= 0x20 || byte === 0x0a || byte === 0x09).toBe(true)
      }),
    )
  })
})

describe('sanitizeLine', () => {
  it('makes one harmless line of any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(sanitizeLine(text)).not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Cs}\u2028\u2029]/u)
      }),
    )
  })
})

describe('sanitizeStyled', () => {
  it('keeps our colours, line ends and tabs, and nothing else that steers', () => {
    expect(sanitizeStyled('\u001B[32mactive\u001B[39m\tx\ny')).toBe('\u001B[32mactive\u001B[39m\tx\ny')
    expect(sanitizeStyled('\u001B[8mhidden\u001B[2Jgone\u001B]0;x\u0007\u202E')).toBe(
      String.raw`␛[8mhidden␛[2Jgone␛]0;x␇\u202e`,
    )
  })
})
