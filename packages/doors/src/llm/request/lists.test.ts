import { expect, it } from 'vitest'
import type { z } from 'zod'
import { chatBody } from './chat.ts'
import { embeddingsBody } from './embeddings.ts'
import { messagesBody } from './messages.ts'
import { responsesBody } from './responses.ts'

/** Items that count how often a reader looks at one of them. */
function countedItems(length: number) {
  const looks = { at: -1 }
  const items = Array.from({ length }, (_, at) => {
    const look = () => {
      looks.at = Math.max(looks.at, at)
      return undefined
    }
    return Object.defineProperties({}, { role: { get: look, enumerable: true }, type: { get: look, enumerable: true } })
  })
  return { items, looks }
}

const schemas: readonly (readonly [string, z.ZodType, (items: readonly unknown[]) => object])[] = [
  ['messages of chat', chatBody, (messages) => ({ model: 'm', messages })],
  ['content of chat', chatBody, (content) => ({ model: 'm', messages: [{ role: 'user', content }] })],
  ['tools of chat', chatBody, (tools) => ({ model: 'm', messages: [{ role: 'user', content: 'hi' }], tools })],
  ['input of responses', responsesBody, (input) => ({ model: 'm', input })],
  ['messages', messagesBody, (messages) => ({ model: 'm', max_tokens: 1, messages })],
  ['blocks', messagesBody, (content) => ({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content }] })],
]

it.each(schemas)('wrong items in %s are refused at the first one', (_, schema, bodyOf) => {
  const { items, looks } = countedItems(100)
  expect(schema.safeParse(bodyOf(items)).success).toBe(false)
  expect(looks.at).toBe(0)
})

it.each([
  ['lists', Array.from({ length: 1000 }, () => [])],
  ['objects', Array.from({ length: 1000 }, () => ({}))],
])('wrong inputs of embeddings, %s, have the issues of one', (_, input) => {
  const issuesOf = (value: unknown) => embeddingsBody.safeParse({ model: 'm', input: value }).error?.issues
  expect(issuesOf(input)).toEqual(issuesOf(input.slice(0, 1)))
})

it('a list of more than 100,000 items is refused', () => {
  const bodyOf = (length: number) => ({ model: 'm', input: Array.from({ length }, () => 'x') })
  expect(embeddingsBody.safeParse(bodyOf(100_000)).success).toBe(true)
  expect(embeddingsBody.safeParse(bodyOf(100_001)).success).toBe(false)
})
