import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pathBytes, pathText } from './byte-path.ts'

describe('a path as text', () => {
  it('is itself where it is UTF-8, and a URL where it is not', () => {
    expect(pathText(Buffer.from('/workspace/ü %41'))).toBe('/workspace/ü %41')
    expect(pathText(Buffer.from('/workspace/a \u{ff}', 'latin1'))).toBe('file:///workspace/a%20%FF')
  })

  it('means the bytes that it was made of', () => {
    const name = fc
      .uint8Array({ minLength: 1, maxLength: 12 })
      .filter((bytes) => !bytes.includes(0) && !bytes.includes(47))
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 3 }), (names) => {
        const bytes = Buffer.concat(names.flatMap((one) => [Buffer.from('/'), Buffer.from(one)]))
        fc.pre(!bytes.toString('latin1').split('/').includes('..'))
        expect(pathBytes(pathText(bytes))).toEqual(bytes)
      }),
    )
  })

  it.each([
    ['a second name of what is UTF-8', 'file:///workspace/a'],
    ['the same, hidden', 'file:///workspace/%61'],
    ['no root', 'file://workspace/%FF'],
    ['half of a byte', 'file:///workspace/%FF%4'],
    ['a way up', 'file:///workspace/%2E%2e/%FF'],
    ['NUL', 'file:///workspace/%00%FF'],
    ['a way up in plain text', 'a/../b'],
    ['nothing', ''],
  ])('means nothing when it is %s', (_what, text) => expect(pathBytes(text)).toBeUndefined())
})
