import { putToolBody, type ToolInput } from '@airlock/contract'
import { expect, it } from 'vitest'
import { isInScope } from './path-scope.ts'
import { OutOfScope, renderCall } from './render-call.ts'

const spec = (more: Partial<ToolInput> = {}) =>
  putToolBody.parse({
    description: 'x',
    origin: 'https://api.example',
    method: 'POST',
    path: '/a/{one}/b{two}',
    query: ['tags'],
    body: ['text'],
    parameters: {
      properties: {
        one: { type: 'string' },
        two: { type: 'integer', minimum: 1, maximum: 9 },
        tags: { type: 'array', items: { type: 'string', enum: ['x', 'y'] }, maxItems: 2 },
        text: { type: 'string', maxLength: 3 },
      },
      required: ['one', 'two'],
    },
    scope: ['/a/*/b*'],
    ...more,
  })

it('a call has its parameters where the tool puts them', () => {
  const { target, body } = renderCall(spec(), { one: 'é ü', two: 2, tags: ['x', 'y'], text: '"' })
  expect(target).toBe('/a/%C3%A9%20%C3%BC/b2?tags=x&tags=y')
  expect(body).toBe('{"text":"\\""}')
  expect(renderCall(spec(), { one: 'x', two: 2 })).toMatchObject({ target: '/a/x/b2', body: '{}' })
})

it.each([
  [{ two: 1 }, 'params.one is missing.'],
  [{ one: 1, two: 1 }, 'params.one must be a string.'],
  [{ one: 'x', two: 1.5 }, 'params.two must be an integer.'],
  [{ one: 'x', two: 10 }, 'params.two must be at most 9.'],
  [{ one: 'x', two: 1, tags: 'x' }, 'params.tags must be an array.'],
  [{ one: 'x', two: 1, tags: ['z'] }, 'params.tags must be one of x, y.'],
  [{ one: 'x', two: 1, tags: ['x', 'x', 'x'] }, 'params.tags must have at most 2 items.'],
  [{ one: 'x', two: 1, text: 'long' }, 'params.text must have at most 3 characters.'],
  [{ one: '\ud800', two: 1 }, 'params.one must be well-formed text.'],
  [{ one: 'x', two: 1, toString: 1 }, 'params.toString is not a parameter of this tool.'],
])('parameters that the tool does not describe are refused: %j', (params, message) => {
  expect(() => renderCall(spec(), params)).toThrow(message)
})

it('a path outside of the scope is refused, also where a template alone would lead there', () => {
  for (const one of ['.', '..', 'a/b', '%2e', '．．', 'a\\b', 'a?b', '', '\0'])
    expect(() => renderCall(spec(), { one, two: 1 })).toThrow(OutOfScope)
  expect(() => renderCall(spec({ scope: ['/a/only/b1'] }), { one: 'other', two: 1 })).toThrow(OutOfScope)
  expect(renderCall(spec({ scope: ['/a/only/b1'] }), { one: 'only', two: 1 }).target).toBe('/a/only/b1')
})

it.each([
  ['/a/b', '/a/*', true],
  ['/a/b/c', '/a/*', false],
  ['/a', '/a/*', false],
  ['/a/xby', '/a/x*y', true],
  ['/a/xy', '/a/x*y*y', false],
  ['/a/xyzy', '/a/x*z*y', true],
  ['/A/b', '/a/b', false],
])('%s in %s is %s', (path, scope, isIn) => {
  expect(isInScope(path, [scope])).toBe(isIn)
})

it('a star costs no more than the text is long', () => {
  expect(isInScope(`/${'a'.repeat(8000)}b`, [`/${'*a'.repeat(500)}*c`])).toBe(false)
})

it.each([
  [{ path: '/a/{none}/b{two}' }, 'none is not described'],
  [{ query: ['tags', 'text'] }, 'text has two places'],
  [{ query: [] }, 'tags is not in path, query or body'],
  [{ method: 'GET' as const }, 'GET has none'],
  [{ path: '/a/../{one}/b{two}' }, 'must not have'],
  [{ scope: [] }, 'scope'],
  [{ origin: 'https://api.example/path' }, 'must be an origin'],
  [{ headers: { authorization: 'x' } }, 'is a credential'],
  [{ headers: { host: 'x' } }, 'is a header that a tool cannot set'],
])('a description with a fault is refused: %j', (more, fault) => {
  expect(() => spec(more)).toThrow(fault)
})
