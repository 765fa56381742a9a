import type { AirlockError } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { describe, expect, it } from 'vitest'
import { startServer } from '../support/server.ts'
import { append, appended, Asking, needed, refusal } from './asking.ts'

describe('an approval that was being used when the server died', () => {
  it('is used up, though nothing happened: it is never used twice', async () => {
    const server = await startServer({ failpoint: 'approval.used:control-plane' })
    try {
      const asking = await Asking.on(server)
      const sandbox = await asking.developer.sandboxes.create()
      const id = await needed(append(sandbox))
      await asking.operator.approvals.approve(id)
      expect(await refusal(append(sandbox))).toMatchObject({ code: 'server_unreachable' })
      expect(await server.diedAtFailpoint()).toBe(true)
      const state = async () => (await asking.admin.approvals.get(id)).state
      expect(await patiently(state)).toBe('used')
      expect(await patiently(async () => appended(sandbox))).toBe(0)
      expect(await needed(append(sandbox))).not.toBe(id)
      const { items } = await asking.admin.audit.events({ point: 'approval.use' })
      expect(items.map(({ status, payload }) => [status, payload['approval']])).toEqual([
        ['unknown', id],
        ['requested', id],
      ])
    } finally {
      await server.stop()
    }
  })

  it('is pending still after a restart, and can be answered then', async () => {
    const first = await startServer()
    const before = await Asking.on(first)
    const sandbox = await before.developer.sandboxes.create()
    const id = await needed(append(sandbox))
    await first.stop('SIGTERM')
    const second = await startServer({ home: first.home })
    try {
      const after = await Asking.on(second)
      const same = await after.developer.sandboxes.get(sandbox.id)
      expect(await needed(append(same))).toBe(id)
      await after.operator.approvals.approve(id)
      await append(same)
      expect(await appended(same)).toBe(1)
    } finally {
      await second.stop()
    }
  })
})

describe('a server that stops', () => {
  it('lets who waits go, and what it waited for does not happen', async () => {
    const server = await startServer()
    const asking = await Asking.on(server)
    const sandbox = await asking.developer.sandboxes.create()
    const waiting = refusal(append(await asking.waiting(sandbox)))
    await asking.pending(sandbox)
    await server.stop('SIGTERM')
    const error: AirlockError = await waiting
    expect(['not_ready', 'server_unreachable']).toContain(error.code)
    const again = await startServer({ home: server.home })
    const after = new Asking(again, asking.operator)
    expect(await appended(await after.developer.sandboxes.get(sandbox.id))).toBe(0)
    await again.stop()
  })
})

/** Asks again while the server comes back. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  return waitFor(async () => work().catch(() => undefined), { signal: deadline(100_000), everyMs: 50 })
}
