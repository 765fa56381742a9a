import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { RecorderClient } from '@airlock/audit'
import {
  AirlockError,
  type AuditRecord,
  type BudgetLimits,
  createSandboxBody,
  type CreateSandboxBody,
  createSessionBody,
  type CreateSessionBody,
  type FailpointName,
  type NewRecord,
  type Point,
  type Principal,
  runCommandBody,
  type RunCommandBody,
  runStepBody,
  type RunStepBody,
} from '@airlock/contract'
import { createLog, KeyedLock, newId } from '@airlock/std'
import { memoryDir } from '../../../../test/support/memory-dir.ts'
import { KillList } from '../kills/kill-list.ts'
import { EvidenceGate } from '../evidence/evidence-gate.ts'
import { ApprovalNews } from '../approvals/news.ts'
import { openPermitDesk } from '../sandboxes/permits.ts'
import { SealKeyFile } from '../tools/seal-key-file.ts'
import { DoorNews } from '../doors/door-news.ts'
import { openSandboxTokenDesk } from '../doors/sandbox-tokens.ts'
import { GuardKeys } from '../identity/guard-keys.ts'
import { prepareFirstStart } from '../identity/first-start.ts'
import { setKeyUsed } from '../store/api-keys.ts'
import { LatestTimes } from '../store/engine/latest-times.ts'
import { beatNode, findNode, insertNodeIfAbsent } from '../store/nodes.ts'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { DataPlaneClient } from '../nodes/data-plane-client.ts'
import { Heartbeats } from '../agents/heartbeats.ts'
import type { KillHook } from '../kills/kill-hooks.ts'
import { openKillSpill } from '../kills/kill-spill.ts'
import { createLifecycle, type Lifecycle } from '../app/lifecycle-parts.ts'
import { ModelCatalog } from '../models/catalog.ts'
import { builtinGraphs } from '../runs/builtin-graphs.ts'
import { openReservationDesk } from '../models/reservation-desk.ts'
import { openArtifactLinkDesk } from '../artifacts/artifact-links.ts'
import type { NodeIdentity } from '../nodes/node-identity.ts'
import { Readiness } from '../nodes/readiness.ts'
import { makeGuardian } from './guardian.ts'
import type { TestRecorder } from './recorder.ts'
import { ScriptedDataPlane } from './scripted-data-plane.ts'
import { ScriptedDoors } from './scripted-doors.ts'

export const AGENT_STALE_MS = 60 * 60_000

/** Time that only the test moves. */
class TestClock {
  #now = Date.now()

  now(): number {
    return this.#now
  }

  advance(ms: number): void {
    this.#now += ms
  }
}

/** More than any test uses that is not about budgets. */
const AMPLE = {
  sandboxes: 100,
  memoryBytes: 2 ** 40,
  diskBytes: 2 ** 40,
  cpus: 100,
  computeSecondsPerDay: 1e6,
  dollarsPerDay: 1,
  modelCallsPerDay: 1000,
  modelTokensPerDay: 1_000_000,
}

interface WorldOptions {
  readonly capacity?: number
  readonly budget?: Partial<BudgetLimits>
  /** Its store; a file of its own without it. */
  readonly place?: StorePlace
  /** Which node it is; `here` without it. */
  readonly node?: string
}

/**
 * A control plane without its HTTP edge: a real store, a real recorder, and a scripted data plane. `restart` is what a
 * kill and a new start do: everything in memory is gone.
 */
export class World {
  readonly home: string
  readonly clock = new TestClock()
  readonly plane: ScriptedDataPlane
  readonly doors = new ScriptedDoors()
  /** What the disk still does with a record that is written: a test may make it slow, or fail. */
  syncing: () => Promise<void> = async () => {}
  /** Records of these points and states are refused, as a recorder on a full disk does. */
  refused: readonly `${Point} ${NewRecord['status']}`[] = []
  /** Sent so far: tenant, event, payload. */
  readonly webhooks: (readonly unknown[])[] = []
  /** Called at each failpoint. */
  at: (name: FailpointName) => Promise<void> | void = () => {}
  /** Told of kills from the next restart on. */
  killHooks: readonly KillHook[] = []
  readonly capacity: number
  readonly budget: BudgetLimits
  readonly place: StorePlace
  readonly node: NodeIdentity
  readonly #recorder: TestRecorder
  /** How long the chain was before this world: a recorder serves several. */
  #before = 0
  #audit: RecorderClient | undefined
  #context: Context | undefined
  #lifecycle: Lifecycle | undefined

  private constructor(recorder: TestRecorder, home: string, options: WorldOptions) {
    this.home = home
    this.capacity = options.capacity ?? 50
    this.budget = { ...AMPLE, ...options.budget }
    this.node = { id: options.node ?? 'here', holder: home }
    this.place = options.place ?? { file: join(home, 'airlock.db') }
    this.#recorder = recorder
    this.plane = new ScriptedDataPlane({ socket: join(home, 'data-plane.sock'), permitKey: join(home, 'permit.pub') })
  }

  static async make(recorder: TestRecorder, options: WorldOptions = {}): Promise<World> {
    const world = new World(recorder, mkdtempSync(join(memoryDir(), 'airlock-control-')), options)
    await world.plane.listen()
    await world.restart()
    world.#before = (await given(world.#audit).head('default')).head.seq
    return world
  }

  get context(): Context {
    return given(this.#context)
  }

  get store(): Store {
    return this.context.store
  }

  get lifecycle(): Lifecycle {
    return given(this.#lifecycle)
  }

  async restart(): Promise<void> {
    await this.#leave()
    const audit = this.#recorder.client(newId('spill'))
    const store = await openStore(this.place)
    const aliveBefore = await this.#join(store)
    await prepareFirstStart(store, { keysDir: this.home, clock: this.clock, node: this.node.id })
    const permits = await openPermitDesk(this.home)
    await permits.publish(this.home, this.node.id)
    this.#audit = audit
    const gate = this.#gate(audit)
    const kills = new KillList()
    const log = createLog({ process: 'control-plane', level: 'silent', write: () => {} })
    const guard = makeGuardian(store, gate, kills)
    await guard.policies.refresh()
    this.#context = {
      store,
      node: this.node,
      audit: gate,
      ...guard,
      dataPlane: new DataPlaneClient({ unix: join(this.home, 'data-plane.sock') }),
      permits,
      sandboxTokens: await openSandboxTokenDesk(this.home),
      models: new ModelCatalog([]),
      artifactLinks: await openArtifactLinkDesk(this.home),
      artifactBounds: { maxBytes: 2 ** 30, quotaBytes: 2 ** 32, quotaCount: 1000 },
      graphs: builtinGraphs(),
      reservations: await openReservationDesk(this.home, this.home),
      sealKey: new SealKeyFile(this.home),
      doors: this.doors,
      doorNews: new DoorNews(),
      readiness: new Readiness({ isHeld: true, isAnswered: true }),
      approvalNews: new ApprovalNews(),
      webhooks: { send: (...sent) => void this.webhooks.push(sent), stop: async () => {} },
      webhookPrivate: true,
      kills,
      killSpill: openKillSpill(this.home, log),
      killHooks: this.killHooks,
      turns: new KeyedLock(),
      clock: this.clock,
      aliveBefore,
      log,
      failpoint: async (name) => this.at(name),
      capacity: this.capacity,
      oversubscription: { memory: 1, disk: 1, cpus: 1 },
      budgetDefaults: this.budget,
      heartbeats: new Heartbeats({ store, clock: this.clock }),
      keyUses: new LatestTimes(store, setKeyUsed),
      guardKeys: new GuardKeys({ store, clock: this.clock }),
      agentStaleMs: AGENT_STALE_MS,
      approvesVersions: false,
    }
    this.#lifecycle = createLifecycle(this.context)
    await this.lifecycle.killswitch.restore()
    await this.lifecycle.reconciler.adopt()
    this.context.readiness.serve()
  }

  /** One round of the sweep, and what it began. */
  async sweep(): Promise<void> {
    await this.lifecycle.killswitch.look()
    await this.lifecycle.killswitch.settled()
    await this.lifecycle.reconciler.look()
    await this.lifecycle.reconciler.settled()
    await this.lifecycle.agentEnds.look()
    await this.lifecycle.agentEnds.settled()
    await this.lifecycle.grantEnds.look()
    await this.lifecycle.grantEnds.settled()
    await this.lifecycle.connections.look()
    await this.lifecycle.connections.settled()
  }

  /** A sign of life. */
  async beat(): Promise<void> {
    const times = { seenAt: this.store.now(this.clock), clockAt: this.clock.now() }
    await this.store.query((db) => beatNode(db, this.node, times))
  }

  /** What the evidence says of a sandbox, oldest first; that it was connected when it was made is left out. */
  async evidence(sandbox?: string): Promise<readonly AuditRecord[]> {
    return (await this.#records(sandbox)).filter(({ point, payload }) => !isFirstConnection(point, payload))
  }

  /** How a sandbox was connected, oldest first. */
  async connections(sandbox: string): Promise<readonly AuditRecord[]> {
    return (await this.#records(sandbox)).filter(({ point }) => point === 'sandbox.connect')
  }

  /** The same as `point status`, for comparing. */
  async story(sandbox?: string): Promise<readonly string[]> {
    return (await this.evidence(sandbox)).map((record) => `${record.point} ${record.status}`)
  }

  async close(): Promise<void> {
    await this.#leave()
    await this.plane.die()
    rmSync(this.home, { recursive: true, force: true })
  }

  /** Answers its last sign of life, as claiming the node does. */
  async #join(store: Store): Promise<number> {
    const fresh = { ...this.node, url: '', beat: 0, seenAt: 0, clockAt: 0, auditKey: null }
    await store.query((db) => insertNodeIfAbsent(db, fresh))
    return (await store.query((db) => findNode(db, this.node.id)))?.clockAt ?? 0
  }

  #gate(audit: RecorderClient): EvidenceGate {
    return new EvidenceGate({
      require: async (record) => {
        if (this.refused.includes(`${record.point} ${record.status}`)) throw new AirlockError('evidence_unavailable')
        await audit.require(record)
      },
      requireWritten: async (record) => {
        if (this.refused.includes(`${record.point} ${record.status}`)) throw new AirlockError('evidence_unavailable')
        const written = await audit.requireWritten(record)
        const durable = written.durable.then(() => this.syncing())
        // As of the recorder's own client: who asks hears it.
        durable.catch(() => undefined)
        return { durable }
      },
      note: (record, options) => audit.note(record, options),
      flush: (timeoutMs) => audit.flush(timeoutMs),
    })
  }

  async #records(sandbox?: string): Promise<readonly AuditRecord[]> {
    // An end is noted once whoever waited for it has been answered.
    await setImmediate()
    await given(this.#audit).flush(5000)
    const query = { limit: 1000, ...(sandbox === undefined ? {} : { sandbox }) }
    const { records } = await given(this.#audit).query('default', query)
    return records.filter((record) => record.seq > this.#before).toReversed()
  }

  async #leave(): Promise<void> {
    this.#lifecycle?.watch.stop()
    this.#lifecycle?.stepWatch.stop()
    this.#audit?.close()
    this.#context?.dataPlane.close()
    this.#context?.killSpill.close()
    await this.#context?.store.close()
  }
}

function isFirstConnection(point: Point, payload: AuditRecord['payload']): boolean {
  return point === 'sandbox.connect' && payload['cause'] === 'creation'
}

export const CALLER: Caller = caller({ tenant: 'default' })

export function caller(of: Partial<Principal>): Caller {
  return {
    principal: { actor: 'key:test', tenant: 'default', role: 'developer', agents: null, platform: false, ...of },
    requestId: 'req_test',
  }
}

export function aSandbox(asked: Partial<CreateSandboxBody> = {}): CreateSandboxBody {
  return createSandboxBody.parse(asked)
}

export function aCommand(asked: Partial<RunCommandBody> = { argv: ['true'] }): RunCommandBody {
  return runCommandBody.parse(asked)
}

export function aSession(asked: Partial<CreateSessionBody> = {}): CreateSessionBody {
  return createSessionBody.parse({ runtime: 'bash', ...asked })
}

export function aStep(asked: Partial<RunStepBody> = {}): RunStepBody {
  return runStepBody.parse({ code: 'true', ...asked })
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('the world is not made yet')
  return value
}
