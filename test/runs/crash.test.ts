import { Airlock, type RunEvent } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { PRELUDE, PROGRAMS } from './programs.ts'

let server: TestServer
let airlock: Airlock

beforeAll(async () => {
  server = await startServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  await admin.catalog.put('sandbox:slow', { code: PRELUDE + PROGRAMS.slow, language: 'python' })
}, 240_000)
afterAll(async () => server?.stop())

describe('kill -9 in mid-run', requires('root', 'crun'), () => {
  it.each(['control-plane', 'data-plane'] as const)(
    'of the %s leaves one answer, which is all of its deltas',
    { timeout: 240_000 },
    async (name) => {
      const run = await airlock.runs.start('sandbox:slow', 'hello')
      const events: RunEvent[] = []
      let isKilled = false
      for await (const event of run.events()) {
        events.push(event)
        if (event.event !== 'text_delta' || isKilled) continue
        isKilled = true
        const victim = pidOf(server.home, name)
        if (victim !== undefined) process.kill(victim, 'SIGKILL')
      }
      const said = events.map((event) => (event.event === 'text_delta' ? event.delta : '')).join('')
      const ends = events.filter(({ event }) => ['assistant_final', 'error', 'done'].includes(event))
      expect(ends).toMatchObject([{ event: 'assistant_final', content: said }, { event: 'done' }])
      expect(said).toMatch(/^0 1 .* 39 $/)
      expect(run.data).toMatchObject({ state: 'succeeded', error: null })
      expect(isKilled).toBe(true)
    },
  )
})
