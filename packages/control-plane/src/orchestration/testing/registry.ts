import type { NewRecord, Principal } from '@airlock/contract'
import { setKeyUsed } from '../../store/api-keys.ts'
import { LatestTimes } from '../../store/latest-times.ts'
import { openStore, type Store, type StorePlace } from '../../store/store.ts'
import { insertTenantIfAbsent } from '../../store/tenants.ts'
import type { AgentEnds } from '../agent-ends.ts'
import type { Caller } from '../core.ts'
import { DataPlaneClient } from '../data-plane-client.ts'
import { Heartbeats } from '../heartbeats.ts'
import { Readiness } from '../readiness.ts'
import { createWho, type Who } from '../who.ts'

const BUDGET = { sandboxes: 5, memoryBytes: 2 ** 31, cpus: 2, computeSecondsPerDay: 172_800, dollarsPerDay: 10 }

type Ended = Parameters<AgentEnds['endSandboxesOf']>

/** The registry of agents, keys and tenants on a real store, without sandboxes: what it wants to end is written down. */
export class TestRegistry {
  readonly store: Store
  readonly who: Who
  readonly heartbeats: Heartbeats
  readonly keyUses: LatestTimes
  readonly records: NewRecord[] = []
  readonly ended: Ended[] = []
  now = 1_000_000

  private constructor(store: Store) {
    this.store = store
    const clock = { now: () => this.now }
    const readiness = new Readiness({ isHeld: true })
    readiness.serve()
    this.heartbeats = new Heartbeats({ store, clock })
    this.keyUses = new LatestTimes(store, setKeyUsed)
    const keep = (record: NewRecord) => void this.records.push(record)
    const audit = { require: async (record: NewRecord) => keep(record), note: keep, flush: async () => {} }
    const times = { heartbeats: this.heartbeats, keyUses: this.keyUses, budgetDefaults: BUDGET }
    const node = { id: 'here', holder: 'here' }
    const world = { store, clock, readiness, audit, node, dataPlane: new DataPlaneClient('/nonexistent'), ...times }
    this.who = createWho(world, {
      agentEnds: { endSandboxesOf: async (...end) => void this.ended.push(end) },
      grantEnds: { endHoldersOf: async () => {} },
    })
  }

  static async open(place: StorePlace): Promise<TestRegistry> {
    const store = await openStore(place)
    for (const id of ['acme', 'globex']) await store.query((db) => insertTenantIfAbsent(db, { id, createdAt: 1 }))
    return new TestRegistry(store)
  }

  /** What was recorded since the last time, as `point status`. */
  story(): readonly string[] {
    return this.records.splice(0).map((record) => `${record.point} ${record.status}`)
  }
}

export function as(of: Partial<Principal> = {}): Caller {
  const principal = { actor: 'key:admin', tenant: 'acme', role: 'admin', agents: null, platform: false, ...of } as const
  return { principal, requestId: 'req_test' }
}
