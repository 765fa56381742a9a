import { AirlockError, isAirlockError, type KillBody, type KillReport, type LiftBody } from '@airlock/contract'
import { newId } from '@airlock/std'
import type { KillOn } from './kill-list.ts'
import { findAgent } from '../store/agents.ts'
import {
  insertKill,
  knownKills,
  liftKill,
  liftKillsOfEnded,
  listKilled,
  listKills,
  listKillsOn,
  listLivingIn,
  saveKilled,
  type StoredKill,
  type StoredKilled,
} from '../store/kills.ts'
import { findSandbox, listLiving } from '../store/sandboxes.ts'
import { findTenant } from '../store/tenants.ts'
import { within } from '../store/engine/within.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import type { KillHooks } from './kill-hooks.ts'
import { toKillReport } from './kill-nouns.ts'
import { type KillMeans, runKill } from './kill-run.ts'
import { assertUnbound } from '../tenants/overseer.ts'

/** A store that has not taken the row by then is not waited for: killing comes first. */
const PERSIST_MS = 2_000
const ASK_MS = 1_000
const RUN_MS = 45_000
const SHOWN = 200

type World = Pick<
  Context,
  'store' | 'dataPlane' | 'node' | 'audit' | 'clock' | 'log' | 'failpoint' | 'kills' | 'killSpill'
>
type Scope = Pick<StoredKill, 'scope' | 'tenant' | 'target'>

interface Parts extends KillMeans {
  readonly hooks: KillHooks
  /** The whole of one run; what is not gone by then is tried again by the sweep. */
  readonly runMs?: number
}

/** What callers have of it. */
export type Kills = Pick<Killswitch, 'on' | 'list' | 'lift'>

/**
 * The killswitch (G9). While one is on nothing is granted in its scope, over restarts, on every node that shares the store;
 * what lives there is ended, and looked for again every second until nothing is found.
 */
export class Killswitch {
  readonly #world: World
  readonly #parts: Parts
  readonly #runs = new Map<string, Promise<readonly StoredKilled[]>>()
  /** What runs found, by kill and sandbox, until the store has it. */
  readonly #unsaved = new Map<string, StoredKilled>()

  constructor(world: World, parts: Parts) {
    this.#world = world
    this.#parts = parts
  }

  /** Answers when everything of this node is gone, or cannot be ended now. Turning it on again ends what lives again. */
  async on(caller: Caller, body: KillBody): Promise<KillReport> {
    const { kills, clock, failpoint } = this.#world
    const scope = await this.#resolve(caller, body)
    const { reason } = body
    const by = { reason, actor: caller.principal.actor, at: clock.now(), liftedAt: null, liftedBy: null }
    const asked = { id: newId('kil', clock.now()), ...scope, ...by }
    // From here on nothing is granted, whether or not the store takes it.
    if (!kills.find(scope)) kills.add({ ...asked, isPersisted: false })
    const kill = await this.#persist(kills.find(scope) ?? { ...asked, isPersisted: false })
    await failpoint('kill.row-written')
    const deed = deedOf(caller, kill)
    this.#world.audit.note({ ...deed, status: 'requested' })
    await this.#run(kill)
    const { report, killed } = await this.#reportOf(kill, caller)
    this.#noteDone(deed, report)
    this.#parts.hooks.tell(report, (tenant) => toKillReport(kill, ofTenant(killed, tenant), []))
    return report
  }

  /** Newest first, with what each did; of other tenants only for the platform. */
  async list(caller: Caller, asked: { readonly all: boolean }): Promise<readonly KillReport[]> {
    const { store, kills } = this.#world
    assertUnbound(caller)
    const { principal } = caller
    const tenant = principal.platform ? null : principal.tenant
    const rows = await store.query((db) => listKills(db, { tenant, isLiftedToo: asked.all, limit: SHOWN }))
    const known = new Set(rows.map(({ id }) => id))
    const unwritten = kills.kills.filter((kill) => !known.has(kill.id) && !kill.isPersisted)
    const seen = unwritten.filter((kill) => tenant === null || kill.tenant === tenant || kill.scope === 'all')
    const shown = [...seen.toReversed(), ...rows.map((row) => ({ ...row, isPersisted: true }))]
    return Promise.all(shown.map((kill) => this.#report(kill, caller)))
  }

  /** It grants, so its record comes first. What was ended stays ended. */
  async lift(caller: Caller, body: LiftBody): Promise<KillReport> {
    const { store, kills, clock } = this.#world
    const scope = await this.#resolve(caller, body)
    await this.reload()
    const known = kills.find(scope)
    if (!known) throw new AirlockError('kill_not_found')
    // One that the store does not have could come back after this.
    const kill = await this.#persist(known)
    const by = { liftedAt: clock.now(), liftedBy: caller.principal.actor }
    const deed = { ...deedOf(caller, kill), point: 'kill.lift' } as const
    await doRecorded(this.#world, deed, async () => ({
      value: await store.transaction((db) => liftKill(db, scope, by)),
    }))
    kills.remove(kill)
    this.#keepUnstored()
    return this.#report({ ...kill, ...by }, caller)
  }

  /** Before anything is granted: what an earlier life of this server could not store holds again, beside what the store has. */
  async restore(): Promise<void> {
    const { store, kills, killSpill } = this.#world
    const { found } = killSpill
    const known = await store.query((db) =>
      knownKills(
        db,
        found.map(({ id }) => id),
      ),
    )
    for (const kill of found) if (!known.has(kill.id)) kills.add({ ...kill, isPersisted: false })
    await this.reload()
    await this.#persistAll()
    this.#keepUnstored()
  }

  /** What other nodes turned on or lifted. Fails when the store does not answer: then what is known holds. */
  async reload(): Promise<void> {
    const { store, kills } = this.#world
    const asked = kills.kills
    kills.replace(await store.query(listKillsOn), asked)
  }

  /** One look of the sweep: what is not written is, and what still lives in a scope is ended. Does not wait for the ends. */
  async look(): Promise<void> {
    const { kills, store, node } = this.#world
    await this.#persistAll()
    await this.#saveRest()
    await this.#liftOfEnded()
    await this.reload()
    if (kills.kills.length === 0) return
    for (const { id, tenant, agent } of await store.query((db) => listLiving(db, node.id))) {
      const kill = kills.covers({ tenant, agent, sandbox: id })
      if (kill && !this.#runs.has(kill.id)) void this.#run(kill)
    }
  }

  /** Waits for what is under way, however it goes. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#runs.values())
  }

  /** Calls at the same time share one run. */
  async #run(kill: KillOn): Promise<void> {
    const { log } = this.#world
    const running = this.#runs.get(kill.id)
    const mine = running ?? runKill(this.#world, { runMs: RUN_MS, ...this.#parts }, kill)
    if (!running) this.#runs.set(kill.id, mine)
    try {
      for (const one of await mine) this.#unsaved.set(`${one.kill}/${one.sandbox}`, one)
      await this.#saveRest()
    } catch (error) {
      log.error('a kill is not told yet', { kill: kill.id, error })
    } finally {
      if (!running) this.#runs.delete(kill.id)
    }
  }

  /** Bounded: a store that hangs is tried again by the sweep. */
  async #persist(kill: KillOn): Promise<KillOn> {
    const { store, kills, log } = this.#world
    if (kill.isPersisted) return kill
    const { isPersisted: _, ...row } = kill
    try {
      const stored = await within(
        PERSIST_MS,
        store.transaction((db) => insertKill(db, row)),
      )
      const written = { ...stored, isPersisted: true }
      kills.add(written)
      return written
    } catch (error) {
      log.error('a kill cannot be written, so it kills unwritten', { kill: kill.id, error })
      return kill
    } finally {
      this.#keepUnstored()
    }
  }

  async #persistAll(): Promise<void> {
    for (const kill of this.#world.kills.kills) if (!kill.isPersisted) await this.#persist(kill)
  }

  /** In a file until the store has them, so that they outlive this process. */
  #keepUnstored(): void {
    const { kills, killSpill } = this.#world
    killSpill.keep(kills.kills.filter(({ isPersisted }) => !isPersisted))
  }

  /** Those that are being carried out are left alone, until what they did is written. */
  async #liftOfEnded(): Promise<void> {
    const { kills, store, clock } = this.#world
    const isDue = ({ id, scope }: KillOn) => scope === 'sandbox' && !this.#runs.has(id)
    if (!kills.kills.some(isDue)) return
    await store.transaction((db) => liftKillsOfEnded(db, { liftedAt: clock.now(), liftedBy: 'system' }))
  }

  async #saveRest(): Promise<void> {
    const { store, kills } = this.#world
    // Its kill must be there first.
    const unwritten = new Set(kills.kills.filter(({ isPersisted }) => !isPersisted).map(({ id }) => id))
    const rest = [...this.#unsaved].filter(([, { kill }]) => !unwritten.has(kill))
    if (rest.length === 0) return
    await store.transaction((db) =>
      saveKilled(
        db,
        rest.map(([, killed]) => killed),
      ),
    )
    for (const [name, killed] of rest) if (this.#unsaved.get(name) === killed) this.#unsaved.delete(name)
  }

  async #report(kill: KillOn, caller: Caller): Promise<KillReport> {
    return (await this.#reportOf(kill, caller)).report
  }

  /** Of a kill of everything a tenant sees what it lost itself; `killed` is what anybody did. */
  async #reportOf(kill: KillOn, { principal }: Caller) {
    const { store, node } = this.#world
    const seen = <T extends { readonly tenant: string }>(all: readonly T[]) =>
      principal.platform ? all : ofTenant(all, principal.tenant)
    const found = await within(
      ASK_MS,
      store.query(async (db) => ({ killed: await listKilled(db, [kill.id]), living: await listLivingIn(db, kill) })),
    ).catch(() => ({ killed: [], living: [] }))
    const unsaved = [...this.#unsaved.values()].filter((one) => one.kill === kill.id)
    const killed = [...new Map([...found.killed, ...unsaved].map((one) => [one.sandbox, one])).values()]
    const due = kill.liftedAt === null ? seen(found.living).filter((one) => one.node !== node.id) : []
    return { report: toKillReport(kill, seen(killed), [...new Set(due.map((one) => one.node))]), killed }
  }

  #noteDone(deed: Deed, report: KillReport): void {
    const { slowestMs, unverified, nodesDue, persisted } = report
    const sandboxes = report.sandboxes.map(({ id }) => id)
    const payload = { ...deed.payload, sandboxes, slowestMs, unverified, nodesDue, persisted }
    const status = unverified.length === 0 ? 'done' : 'failed'
    this.#world.audit.note({ ...deed, status, payload })
  }

  /** What the caller may kill: not yours is not found, and everything is the platform's. */
  async #resolve(caller: Caller, body: LiftBody): Promise<Scope> {
    assertUnbound(caller)
    const { principal } = caller
    if (body.scope === 'all') {
      if (!principal.platform) throw new AirlockError('forbidden')
      return { scope: 'all', tenant: '', target: '' }
    }
    if (body.scope === 'sandbox') return this.#resolveSandbox(caller, body.target ?? '')
    const tenant = (body.scope === 'tenant' ? body.target : body.tenant) ?? principal.tenant
    if (tenant !== principal.tenant && !principal.platform) throw new AirlockError('tenant_not_found')
    if (body.scope === 'tenant') {
      await this.#assertThere('tenant_not_found', (db) => findTenant(db, tenant))
      return { scope: 'tenant', tenant, target: '' }
    }
    const agent = body.target ?? ''
    await this.#assertThere('agent_not_found', (db) => findAgent(db, { tenant, agent }))
    return { scope: 'agent', tenant, target: agent }
  }

  /** Where the store does not answer, the data plane knows whose it is. */
  async #resolveSandbox({ principal }: Caller, id: string): Promise<Scope> {
    const { store, dataPlane } = this.#world
    const row = await within(
      ASK_MS,
      store.query((db) => findSandbox(db, id)),
    ).catch(async () => (await dataPlane.list()).find((one) => one.id === id))
    if (!row || (row.tenant !== principal.tenant && !principal.platform)) throw new AirlockError('sandbox_not_found')
    return { scope: 'sandbox', tenant: row.tenant, target: id }
  }

  /** A store that does not answer is no reason not to kill. */
  async #assertThere(
    code: 'tenant_not_found' | 'agent_not_found',
    find: Parameters<Context['store']['query']>[0],
  ): Promise<void> {
    try {
      if ((await within(ASK_MS, this.#world.store.query(find))) === undefined) throw new AirlockError(code)
    } catch (error) {
      if (isAirlockError(error) && error.code === code) throw error
      this.#world.log.warn('whether there is what is killed is not known', { error })
    }
  }
}

function ofTenant<T extends { readonly tenant: string }>(all: readonly T[], tenant: string): readonly T[] {
  return all.filter((one) => one.tenant === tenant)
}

/** What is about everything is in the chain of the server. */
function deedOf(
  caller: Caller,
  { id, scope, tenant, target, reason }: StoredKill,
): Deed & { readonly point: 'kill.on' } {
  return {
    point: 'kill.on',
    tenant: scope === 'all' ? 'system' : tenant,
    agent: scope === 'agent' ? target : null,
    sandbox: scope === 'sandbox' ? target : null,
    actor: caller.principal.actor,
    payload: { requestId: caller.requestId, kill: id, scope, target: target === '' ? null : target, reason },
  }
}
