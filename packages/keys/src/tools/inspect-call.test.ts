import { expect, it } from 'vitest'
import { encodingsOf } from '../secret/encodings.ts'
import { holdsSecret } from './inspect-call.ts'

const SECRET = 'ghp-canary/0123456789+abcdef'
const encodings = encodingsOf(SECRET)
const base64 = (text: string) => Buffer.from(text).toString('base64')

it.each([
  ['plain', `x${SECRET}y`],
  ['JSON', JSON.stringify({ a: SECRET }).replaceAll('/', String.raw`\/`)],
  ['percent', encodeURIComponent(SECRET)],
  ['base64', base64(SECRET)],
  ['base64 of a longer text', base64(`user:${SECRET}:more`)],
  ['base64 in base64', base64(base64(`x${SECRET}`))],
  ['hexadecimal', Buffer.from(SECRET).toString('hex')],
  ['base64 in percent', encodeURIComponent(base64(`${SECRET}??`))],
])('a text that holds the secret is found: %s', (_, text) => {
  expect(holdsSecret(text, encodings)).toBe(true)
})

it('a part of the secret and any other text are not', () => {
  for (const text of [SECRET.slice(1), SECRET.slice(0, -1), base64('x'.repeat(5000)), '%%%2', ''])
    expect(holdsSecret(text, encodings)).toBe(false)
})
