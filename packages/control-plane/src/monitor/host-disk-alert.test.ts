import { afterAll, beforeAll, expect, it } from 'vitest'
import { mintApiKey } from '../identity/api-keys.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { World } from '../testing/world.ts'
import { insertApiKey } from '../store/api-keys.ts'
import { HostDiskAlert } from './host-disk-alert.ts'

let recorder: TestRecorder
let world: World
beforeAll(async () => {
  recorder = await TestRecorder.start()
  world = await World.make(recorder)
  const key = { tenant: 'default', role: 'admin', agents: null, name: 'a', purpose: null, createdBy: 'system' } as const
  const { row } = mintApiKey({ ...key, platform: true, createdAt: 0, expiresAt: null, replaces: null, person: null })
  await world.store.query((db) => insertApiKey(db, row))
})
afterAll(async () => {
  await world?.close()
  await recorder?.stop()
})

it('is raised at once, eased when it stays better, and told to the webhooks of the platform', async () => {
  const told: unknown[] = []
  const send = (tenant: string, event: string, { change, level, was }: Readonly<Record<string, unknown>>) =>
    void told.push([tenant, event, change, level, was])
  const webhooks = { send, stop: async () => {} }
  const alert = new HostDiskAlert({ ...world.context, webhooks }, { sustained: 2 })
  for (const freeBytes of [200, 120, 120, 99, 120, 99, 120, 120, 200, 200]) {
    world.plane.machine = { ...world.plane.machine, disk: { freeBytes, takenBytes: 0, reserveBytes: 100 } }
    await world.lifecycle.reconciler.look()
    alert.look()
  }
  await expect
    .poll(() => told)
    .toEqual([
      ['default', 'alert', 'raised', 'warning', null],
      ['default', 'alert', 'escalated', 'critical', 'warning'],
      ['default', 'alert', 'eased', 'warning', 'critical'],
      ['default', 'alert', 'cleared', null, 'warning'],
    ])
})
