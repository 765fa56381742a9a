import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { Airlock } from './index.ts'

let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(async () => api.close())

describe('events', () => {
  it('go on where they were after a cut, a break and an error, and tell of a gap', async () => {
    const asked: (string | null)[] = []
    const answers = [
      frames(at(5), record(6), { event: 'cut', seq: 6 }),
      frames(at(6), record(7)),
      frames(at(7), { event: 'error', error: { code: 'evidence_unavailable', message: 'x', hint: '' } }),
      frames(at(7), { event: 'gap', seq: 9 }, record(10)),
    ]
    const fetch: typeof globalThis.fetch = async (url, init) => {
      asked.push(new Headers(init?.headers).get('last-event-id'))
      expect(new URL(url as URL).search).toBe('?point=command.*%2Cfile.read&status=done')
      return new Response(answers.shift() ?? '', { headers: { 'content-type': 'text/event-stream' } })
    }
    const airlock = new Airlock({ url: 'http://127.0.0.1:1', apiKey: 'al_x', fetch })
    const gaps: number[] = []
    const onGap = (seq: number): void => void gaps.push(seq)
    const seen: number[] = []
    for await (const { seq } of airlock.events({ point: ['command.*', 'file.read'], status: 'done', onGap })) {
      seen.push(seq)
      if (seq === 10) break
    }
    expect({ seen, asked, gaps }).toEqual({ seen: [6, 7, 10], asked: [null, '6', '7', '7'], gaps: [9] })
  })

  it('throw what no patience helps, at the beginning and in the middle', async () => {
    const wrong = new Airlock({ url: api.url, apiKey: 'al_wrong' })
    await expect(wrong.events().next()).rejects.toMatchObject({ code: 'unauthenticated' })
    const error = { event: 'error', error: { code: 'forbidden', message: 'no', hint: '' } }
    const fetch: typeof globalThis.fetch = async () => new Response(frames(at(1), error))
    const airlock = new Airlock({ url: 'http://127.0.0.1:1', apiKey: 'al_x', fetch })
    await expect(airlock.events().next()).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('come over a real connection, and end with their signal', async () => {
    const airlock = new Airlock({ url: api.url, apiKey: KEYS.developer })
    const stop = new AbortController()
    const events = airlock.events({ signal: stop.signal })
    expect((await events.next()).value).toMatchObject({ seq: 7, status: 'denied' })
    const next = events.next()
    stop.abort()
    await expect(next).rejects.toMatchObject({ name: 'AbortError' })
    expect(await airlock.eventPage({ after: 3 })).toMatchObject({ after: 7, items: [{ seq: 7 }] })
  })
})

function frames(...events: readonly object[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
}

function at(seq: number): object {
  return { event: 'at', seq }
}

function record(seq: number): object {
  return { event: 'record', seq, record: { seq } }
}
