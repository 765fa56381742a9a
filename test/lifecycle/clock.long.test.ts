import { mkdtempSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'

const DAY = 24 * 3_600_000
const PRELOAD = fileURLToPath(new URL('../support/jumping-clock.ts', import.meta.url))

describe('a machine whose clock jumps', () => {
  let dir: string
  let server: TestServer
  let airlock: Airlock
  const jump = (ms: number) => writeFileSync(join(dir, 'ahead'), String(ms))
  const start = async (home?: string) => {
    const env = { CLOCK_JUMP: join(dir, 'ahead'), NODE_OPTIONS: `--import ${PRELOAD}` }
    server = await startServer({ env, ...(home === undefined ? {} : { home }) })
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  }
  /** The sweep looks once a second, and so does the data plane. */
  const looks = async () => {
    const probe = await airlock.sandboxes.create({ ttlMs: 3_000 })
    const ended = async () => ((await probe.refresh()).data.state === 'stopped' ? true : undefined)
    await waitFor(ended, { signal: deadline(60_000), everyMs: 200 })
  }
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'al-clock-'))
    chmodSync(dir, 0o755)
    jump(0)
    await start()
  })
  afterAll(async () => {
    await server?.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  it.each([
    ['forward', 2 * DAY],
    ['back', -2 * DAY],
  ])('keeps its sandboxes when it jumps %s, with what runs in them, over a restart too', async (_way, ms) => {
    const sandbox = await airlock.sandboxes.create({ ttlMs: 600_000 })
    await sandbox.start({ shell: 'sleep 300' }, { timeoutMs: 300_000 })
    jump(ms)
    await looks()
    expect((await sandbox.refresh()).data.state).toBe('active')
    await server.stop('SIGTERM')
    await start(server.home)
    const kept = await airlock.sandboxes.get(sandbox.id)
    await looks()
    expect((await kept.refresh()).data.state).toBe('active')
    expect((await kept.run({ shell: 'echo here' })).stdout).toBe('here\n')
    expect((await kept.commands()).items.map(({ state }) => state)).toEqual(['exited', 'running'])
    await kept.terminate()
    jump(0)
  })
})
