import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findJsonFault } from './find-json-fault.ts'
import { parseBody } from './parse-body.ts'

describe('a body that two readers could read differently', () => {
  it.each([
    ['{"user":1,"user":2}', '"user"'],
    ['{"user":1,"us\\u0065r":2}', '"user"'],
    ['{"\\u0075ser":1,"user":2}', '"user"'],
    ['{"a":{"user":1},"b":[{"x":1,"user":2,"x":3}]}', '"x"'],
    ['{"a":[],"a":{}}', '"a"'],
    ['{"a":"}","a":1}', '"a"'],
    ['{"a":"\\"","a":1}', '"a"'],
    ['{"a":"\\\\","a":1}', '"a"'],
    ['{"":1,"":2}', '""'],
    ['{ "a" : 1 ,\n"a" : 2 }', '"a"'],
    ['{"a\\n":1,"a\\u000a":2}', '"a\\n"'],
  ])('with a repeated name is refused: %s', (text, name) => {
    expect(findJsonFault(text)).toBe(`The body names ${name} twice in one object.`)
  })

  it.each([
    '{"a":1,"b":{"a":1}}',
    '[{"a":1},{"a":1}]',
    '{"a":"a","b":"a"}',
    '{"a":["b","b"],"b":1}',
    '{"a":"{\\"b\\":1,\\"b\\":2}"}',
    '{"a":1,"A":2}',
    '"a"',
    '1',
    '',
  ])('with other names is not: %s', (text) => {
    expect(findJsonFault(text)).toBeUndefined()
  })

  it.each(['{"__proto__":{}}', '{"a":{"__pr\\u006fto__":1}}'])('with a prototype is refused: %s', (text) => {
    expect(findJsonFault(text)).toBe('The body has a field "__proto__", which is never accepted.')
  })

  it.each(['1e999', '-1e999', '9007199254740993', '[12345678901234567890]', '{"seed":-9007199254740992}'])(
    'with a number that a double cannot hold is refused: %s',
    (text) => {
      expect(findJsonFault(text)).toMatch(/^The number -?\d+(?:e\d+)? in the body is too large; send it as a string\.$/)
    },
  )

  it.each(['9007199254740991', '1e308', '0.1', '-0', '[1,2,3]', '"12345678901234567890"'])(
    'with other numbers is not: %s',
    (text) => {
      expect(findJsonFault(text)).toBeUndefined()
    },
  )
})

describe('depth', () => {
  const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`

  it('of 64 is accepted, and more is refused', () => {
    expect(findJsonFault(nested(64))).toBeUndefined()
    expect(findJsonFault(nested(66))).toBe('The body is nested deeper than 64 levels.')
  })

  it('is counted where it is, not where it was', () => {
    expect(findJsonFault(`[${Array.from({ length: 100 }, () => '[[]]').join(',')}]`)).toBeUndefined()
  })

  it('of a million is refused without a stack', () => {
    expect(findJsonFault('['.repeat(1_000_000))).toBe('The body is nested deeper than 64 levels.')
    expect(findJsonFault('{"a":'.repeat(1_000_000))).toBe('The body is nested deeper than 64 levels.')
  })
})

describe('the check', () => {
  /** Without what is refused for other reasons: a prototype, and a number of 16 digits. */
  const json = (maxDepth: number) => fc.json({ maxDepth }).filter((text) => !/__proto__|\d{16}/.test(text))

  it('accepts what JSON.stringify writes', () => {
    fc.assert(fc.property(json(8), (text) => findJsonFault(text) === undefined))
  })

  it('finds a name that was added twice, wherever the object is', () => {
    const name = fc.string().filter((text) => text !== '__proto__')
    fc.assert(
      fc.property(name, fc.array(fc.tuple(fc.string(), json(3))), (name, fields) => {
        const others = new Map(fields.filter(([key]) => key !== name && key !== '__proto__'))
        const body = [[name, '1'], ...others, [name, '2']].map(
          ([key = '', json = '']) => `${JSON.stringify(key)}:${json}`,
        )
        const text = `{"outer":[0,{${body.join(',')}}]}`
        return findJsonFault(text)?.includes('twice') === true
      }),
    )
  })

  it('never throws on a text that is not JSON', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', '1', '-', 'e', ' ', '\\u00', 'a')
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        findJsonFault(pieces.join(''))
        return true
      }),
    )
  })

  it('looks at each character once, whatever is escaped or left open', () => {
    const long = 2_000_000
    const texts = [
      '"\\"'.repeat(long),
      '\\'.repeat(long),
      `"${'\\\\'.repeat(long)}`,
      '"'.repeat(long),
      '1'.repeat(long),
    ]
    for (const text of texts) expect(() => findJsonFault(text)).not.toThrow()
  })
})

describe('a body', () => {
  it('is read as JSON', () => {
    expect(parseBody(Buffer.from('{"a":[1,"é"]}'))).toEqual({ a: [1, 'é'] })
  })

  it.each([
    ['is not JSON', '{"a":1', 'The body is not valid JSON.'],
    ['is empty', '', 'The body is not valid JSON.'],
    ['is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'The body is not valid JSON.'],
    ['repeats a name', '{"a":1,"a":1}', 'The body names "a" twice in one object.'],
  ])('that %s is refused', (_, body, message) => {
    expect(() => parseBody(Buffer.from(body))).toThrow(expect.objectContaining({ code: 'invalid_request', message }))
  })
})
