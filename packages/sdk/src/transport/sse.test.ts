import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseServerEvents, type ServerEvent } from './sse.ts'

async function parse(chunks: Iterable<Uint8Array>): Promise<readonly ServerEvent[]> {
  async function* body(): AsyncGenerator<Uint8Array> {
    yield* chunks
  }
  const events: ServerEvent[] = []
  for await (const event of parseServerEvents(body())) events.push(event)
  return events
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('parseServerEvents', () => {
  it('reads ids, names, data of several lines, and skips comments', async () => {
    const text = ': hello\n\nid: 7\nevent: output\ndata: a\ndata: b\n\nretry: 5\ndata:c\r\n\r\ndata: unfinished'
    expect(await parse([bytes(text)])).toEqual([
      { id: '7', event: 'output', data: 'a\nb' },
      { id: undefined, event: 'message', data: 'c' },
    ])
  })

  it('gives the same events however the bytes are cut', async () => {
    const event = fc.record({
      id: fc.option(fc.nat().map(String), { nil: undefined }),
      event: fc.constantFrom('output', 'ended'),
      data: fc.json(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 8 }), fc.integer({ min: 1, max: 9 }), async (events, size) => {
        const text = events
          .map(({ id, event, data }) => `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`)
          .join('')
        const whole = bytes(text)
        const chunks = Array.from({ length: Math.ceil(whole.length / size) }, (_, i) =>
          whole.subarray(i * size, (i + 1) * size),
        )
        expect(await parse(chunks)).toEqual(events)
      }),
      { numRuns: 100 },
    )
  })

  it('refuses a line without an end', async () => {
    const chunk = new Uint8Array(1024 * 1024).fill(97)
    await expect(parse(Array.from({ length: 24 }, () => chunk))).rejects.toMatchObject({ code: 'internal' })
  })
})
