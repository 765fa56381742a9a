import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Member, TopLevel } from './top-level.ts'

/** Reads a text that arrives in pieces of that size. */
function read(text: string | Buffer, size = 7): ReadonlyMap<string, Member> {
  const bytes = Buffer.from(text)
  const top = new TopLevel()
  for (let at = 0; at < bytes.length; at += size) top.push(bytes.subarray(at, at + size))
  return top.end()
}

describe('the members of a body', () => {
  it('are read at the top alone, whatever lies deeper', () => {
    const body = { model: 'a', max_tokens: 5, n: null, x: { model: 'b' }, y: [{ model: 'c' }, '"', '{'], ok: true }
    expect([...read(JSON.stringify(body, null, 2))]).toEqual([
      ['model', { scalar: 'a' }],
      ['max_tokens', { scalar: 5 }],
      ['n', { scalar: null }],
      ['x', 'nested'],
      ['y', 'nested'],
      ['ok', { scalar: true }],
    ])
  })

  it('are the same for every way in which the body is cut', () => {
    const text = String.raw`{"mod\u0065l":"a\"b\\","n":-1.5e+3,"deep":[[{"a":"}"}]],"z":false}`
    const whole = [...read(text, text.length)]
    expect(whole).toEqual([
      ['model', { scalar: String.raw`a"b\ `.trim() }],
      ['n', { scalar: -1500 }],
      ['deep', 'nested'],
      ['z', { scalar: false }],
    ])
    for (let size = 1; size < text.length; size += 1) expect([...read(text, size)]).toEqual(whole)
  })

  it('keep no long text', () => {
    expect([...read(`{"input":"${'x'.repeat(600)}","model":"a"}`)]).toEqual([
      ['input', 'long'],
      ['model', { scalar: 'a' }],
    ])
  })

  it.each([
    ['twice', '{"model":"a","model":"b"}', 'names model twice'],
    ['twice, once in another spelling', String.raw`{"model":"a","\u006dodel":"b"}`, 'names model twice'],
    ['by a name without an end', `{"${'x'.repeat(600)}":1}`, 'a name that is too long'],
    ['too deep', `{"a":${'['.repeat(300)}`, 'nested too deeply'],
  ])('are refused %s', (_what, text, why) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(why) }),
    )
  })
})

/** Texts that a lenient reader takes for JSON, and others that are nearly some. */
const NEARLY = [
  '',
  ' {}',
  '\uFEFF{}',
  '[]',
  '"a"',
  '{',
  '{}}',
  '{} x',
  '{}{}',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{,"a":1}',
  '{"a":1 "b":2}',
  '{"a":1]',
  '{"a":[1}',
  '{"a":[1,]}',
  '{"a":[,1]}',
  "{'a':1}",
  '{a:1}',
  '{"a":01}',
  '{"a":-}',
  '{"a":1.}',
  '{"a":.5}',
  '{"a":1e}',
  '{"a":1e+}',
  '{"a":+1}',
  '{"a":0x10}',
  '{"a":NaN}',
  '{"a":Infinity}',
  '{"a":True}',
  '{"a":tru}',
  '{"a":nulll}',
  '{"a":1}//x',
  '{/*"*/"a":1}',
  '{"a":"\n"}',
  '{"a":"\u0000"}',
  String.raw`{"a":"\x41"}`,
  String.raw`{"a":"\u12g4"}`,
  '{"a":"',
  String.raw`{"a":"\"}`,
  '{"a":1\u00a0}',
  '{"a":1}\0',
]

describe('a body that is nearly JSON', () => {
  it.each(NEARLY)('is refused: %j', (text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  it('is refused exactly when the parser of the language refuses it', () => {
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b"',
      '1',
      '-',
      '0',
      '.5',
      'e3',
      'true',
      'null',
      ' ',
      '"',
      '\\',
      'u',
      '\n',
    ]
    const near = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((all) => `{${all.join('')}}`)
    const whole = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }).map((one) => JSON.stringify(one))
    // A letter of a good one is another.
    const broken = fc.tuple(whole, fc.nat(), fc.constantFrom(...pieces)).map(([text, at, piece]) => {
      const cut = at % text.length
      return text.slice(0, cut) + piece + text.slice(cut + 1)
    })
    fc.assert(
      fc.property(fc.oneof(near, whole, broken), fc.integer({ min: 1, max: 9 }), (text, size) => {
        const { value: ours, fault } = outcome(() => read(text, size))
        const { value: theirs } = outcome(() => JSON.parse(text) as unknown)
        const isObject = typeof theirs === 'object' && theirs !== null && !Array.isArray(theirs)
        // JSON may name a member twice, and begin with spaces.
        const isOurs = isObject && text.startsWith('{') && !/ twice[.]$/u.test(fault)
        expect(ours !== undefined).toBe(isOurs)
        if (ours === undefined || !isObject) return
        expect([...ours.keys()].toSorted()).toEqual(Object.keys(theirs).toSorted())
        for (const [name, member] of ours)
          if (typeof member === 'object') expect(member).toEqual({ scalar: Reflect.get(theirs, name) })
      }),
      { numRuns: 3000 },
    )
  })
})

function outcome<T>(work: () => T): { readonly value: T | undefined; readonly fault: string } {
  try {
    return { value: work(), fault: '' }
  } catch (error) {
    return { value: undefined, fault: error instanceof Error ? error.message : '' }
  }
}
