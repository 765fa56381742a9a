import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { verifyExport } from '@airlock/audit'
import type { SignedHead } from '@airlock/contract'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exported } from '../support/exported.ts'
import { flood } from '../support/flood.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** The least that may be kept, so that there is something to drop. */
const SETTINGS = { AIRLOCK_AUDIT_MAX_MB: '32', AIRLOCK_AUDIT_MIN_AGE_HOURS: '0' }
const MB = 1024 * 1024
const patient = () => ({ signal: deadline(180_000), everyMs: 250 })

let server: TestServer
let admin: Airlock

beforeAll(async () => {
  server = await startServer({ env: SETTINGS })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
})

afterAll(async () => {
  await server?.stop('SIGINT')
  // A server that was given its home leaves it.
  rmSync(server.home, { recursive: true, force: true })
})

describe('retention', () => {
  it('drops the oldest, keeps the rest provable, and a change of what vouches for it shows', async () => {
    const kept: SignedHead = (await admin.audit.head()).head
    await flood(server.home, { count: 2200, bytes: 32_000 })
    const stats = await waitFor(async () => {
      const now = await admin.audit.stats()
      return now.retention.dropped && now.bytes <= 32 * MB ? now : undefined
    }, patient())
    const { dropped } = stats.retention
    expect(stats).toMatchObject({
      firstSeq: (dropped?.seq ?? 0) + 1,
      verification: { state: 'good', brokenAt: null },
      retention: { days: 30, maxBytes: 32 * MB, minAgeHours: 0 },
    })
    const { records, lines } = await exported(admin)
    const { publicKey, head } = await admin.audit.head()
    expect(await verifyExport(lines, { publicKey })).toMatchObject({ ok: true, firstSeq: stats.firstSeq, dropped })
    expect(await verifyExport(lines, { publicKey, head: kept })).toMatchObject({ ok: true, head: 'dropped' })
    // Without the statement, or with the beginning cut off behind it, it is a chain that was cut.
    expect(await verifyExport(lines.slice(1), { publicKey })).toMatchObject({ ok: false, brokenAt: 1 })
    expect(await verifyExport(lines.toSpliced(1, 3), { publicKey })).toMatchObject({ ok: false })
    expect(await verifyExport(lines.slice(0, -5), { publicKey, head })).toMatchObject({ ok: false })
    expect(records.findLast(({ point }) => point === 'audit.drop')?.payload).toMatchObject({ upTo: dropped?.seq })
    expect((await admin.agents.summary('default', { days: 1 })).complete).toBe(false)
    await expectTamperingShows()
  })
})

/** The statement is changed while nobody runs, and put back. */
async function expectTamperingShows(): Promise<void> {
  const path = join(server.home, 'recorder/chains/default/dropped')
  await server.stop('SIGTERM')
  const whole = readFileSync(path)
  writeFileSync(path, whole.toString().replaceAll(/"hash":"../g, '"hash":"00'))
  await restart()
  await expect(exported(admin)).rejects.toThrow()
  const { verification } = await waitFor(async () => {
    const now = await admin.audit.stats()
    return now.verification.state === 'broken' ? now : undefined
  }, patient())
  expect(verification).toMatchObject({ brokenAt: 1, reason: expect.any(String) })
  const told = await admin.audit.events({ point: 'audit.broken' })
  expect(told.items[0]).toMatchObject({ status: 'failed', payload: { at: 1 } })
  await server.stop('SIGTERM')
  writeFileSync(path, whole)
  await restart()
  const { publicKey } = await admin.audit.head()
  expect(await verifyExport((await exported(admin)).lines, { publicKey })).toMatchObject({ ok: true })
}

async function restart(): Promise<void> {
  server = await startServer({ home: server.home, env: SETTINGS })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
}
