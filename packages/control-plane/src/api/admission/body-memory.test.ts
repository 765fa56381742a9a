import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { BodyMemory } from './body-memory.ts'

const ACME = { tenant: 'acme', actor: 'key' }
const OTHER = { tenant: 'default', actor: 'key' }

it('is given at once within a share, and in order when more is given back', async () => {
  const memory = new BodyMemory(64)
  const got: string[] = []
  const take = async (name: string, bytes: number) => memory.take(ACME, bytes, answering()).then(() => got.push(name))
  await take('first', 12)
  const second = take('second', 8)
  // There would be room for this one, but it came later.
  const third = take('third', 4)
  await memory.take(OTHER, 8, answering())
  expect(got).toEqual(['first'])
  memory.give(ACME, 12)
  await Promise.all([second, third])
  expect(got).toEqual(['first', 'second', 'third'])
})

it('is not kept for a caller that hung up', async () => {
  const memory = new BodyMemory(64)
  await memory.take(ACME, 12, answering())
  const response = answering()
  const gone = memory.take(ACME, 8, response)
  const next = memory.take(ACME, 4, answering())
  response.emit('close')
  await expect(gone).rejects.toMatchObject({ code: 'timeout' })
  await next
})

it('is refused after the wait, and then blocks nobody', async () => {
  const memory = new BodyMemory(64, 1)
  await memory.take(ACME, 12, answering())
  await expect(memory.take(ACME, 8, answering())).rejects.toMatchObject({ code: 'too_many_requests' })
  await memory.take(ACME, 4, answering())
})

/** Only the event `close` of a response is used. */
function answering(): ServerResponse {
  return new EventEmitter() as ServerResponse
}
