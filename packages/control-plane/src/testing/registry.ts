import type { NewRecord, Principal } from '@airlock/contract'
import { setKeyUsed } from '../store/api-keys.ts'
import { LatestTimes } from '../store/engine/latest-times.ts'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import type { AgentEnds } from '../agents/agent-ends.ts'
import type { Caller } from '../app/caller.ts'
import { DataPlaneClient } from '../nodes/data-plane-client.ts'
import { Heartbeats } from '../agents/heartbeats.ts'
import { GuardKeys } from '../identity/guard-keys.ts'
import { createRegistry, type Registry } from '../app/registry.ts'
import { makeGuardian } from './guardian.ts'
import { staged } from './staged.ts'

const BUDGET = {
  sandboxes: 5,
  memoryBytes: 2 ** 31,
  diskBytes: 2 ** 33,
  cpus: 2,
  computeSecondsPerDay: 172_800,
  dollarsPerDay: 10,
  modelCallsPerDay: 1000,
  modelTokensPerDay: 1_000_000,
}

type Ended = Parameters<AgentEnds['endSandboxesOf']>

interface RegistryOptions {
  readonly approvesVersions: boolean
}

/** The registry of agents, keys and tenants on a real store, without sandboxes: what it wants to end is written down. */
export class TestRegistry {
  readonly store: Store
  readonly who: Registry
  readonly heartbeats: Heartbeats
  readonly keyUses: LatestTimes
  readonly guardKeys: GuardKeys
  readonly records: NewRecord[] = []
  readonly ended: Ended[] = []
  now = 1_000_000

  private constructor(store: Store, options: RegistryOptions) {
    this.store = store
    const clock = { now: () => this.now }
    this.heartbeats = new Heartbeats({ store, clock })
    this.keyUses = new LatestTimes(store, setKeyUsed)
    this.guardKeys = new GuardKeys({ store, clock })
    const keep = (record: NewRecord) => void this.records.push(record)
    const audit = staged({ require: async (record) => keep(record), note: keep, flush: async () => {} })
    const times = { heartbeats: this.heartbeats, keyUses: this.keyUses, budgetDefaults: BUDGET }
    const node = { id: 'here', holder: 'here' }
    const here = { node, dataPlane: new DataPlaneClient({ unix: '/nonexistent' }), ...makeGuardian(store, audit) }
    const { guardKeys } = this
    const world = { store, clock, audit, guardKeys, ...here, ...times, ...options }
    this.who = createRegistry(world, {
      agentEnds: { endSandboxesOf: async (...end) => void this.ended.push(end) },
      grantEnds: { endHoldersOf: async () => {} },
    })
  }

  static async open(place: StorePlace, options: RegistryOptions = { approvesVersions: false }): Promise<TestRegistry> {
    const store = await openStore(place)
    for (const id of ['acme', 'globex']) await store.query((db) => insertTenantIfAbsent(db, { id, createdAt: 1 }))
    return new TestRegistry(store, options)
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
