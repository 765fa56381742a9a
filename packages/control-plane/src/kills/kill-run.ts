import { type FrozenSandboxes, isAirlockError, PERMIT_LIFE_MS } from '@airlock/contract'
import { deadline, sleep, inParallel } from '@airlock/std'
import { listLivingIn, type LivingPlace, type StoredKill, type StoredKilled } from '../store/kills.ts'
import { within } from '../store/engine/within.ts'
import type { Connections } from '../doors/connections.ts'
import type { Context } from '../app/context.ts'
import type { Termination } from '../sandboxes/terminate.ts'

const AT_ONCE = 16
const FIRST_PAUSE_MS = 100
const LAST_PAUSE_MS = 2_000
const DOORS_MS = 1_000
const STORE_MS = 2_000

type World = Pick<Context, 'store' | 'dataPlane' | 'node' | 'clock' | 'log' | 'failpoint'>
type Frozen = FrozenSandboxes['sandboxes'][number]

/** What it takes beside the data plane. */
export interface KillMeans {
  readonly termination: Pick<Termination, 'terminate'>
  readonly connections: Pick<Connections, 'close'>
}

interface Target {
  readonly id: string
  readonly tenant: string
  /** It is being made: its start is broken off first, for its end waits for that. */
  readonly isStarting: boolean
}

/**
 * Ends everything of this node in the scope of a kill: all of it stands still first, then each is destroyed by the one way in
 * which sandboxes end, again and again until the data plane has seen it gone. Never throws. Neither a full disk nor a store
 * that does not answer holds it up: what the data plane has is enough to know whom it is about.
 */
export async function runKill(
  world: World,
  how: KillMeans & { readonly runMs: number },
  kill: StoredKill,
): Promise<readonly StoredKilled[]> {
  const began = performance.now()
  const { termination } = how
  const signal = deadline(how.runMs)
  const frozen = new Map((await freezeScope(world, kill, signal)).map((one) => [one.id, one]))
  await world.failpoint('kill.frozen')
  const living = await findLiving(world, kill)
  const targets = findTargets(kill, living ?? [], frozen)
  // While they stand still. Doors that do not answer hold nothing up: the end of each shuts its own again.
  const shut = inParallel(targets, AT_ONCE, ({ id }) => how.connections.close(id))
  await Promise.race([shut, pause(DOORS_MS, signal)])
  const gone = new Map<string, number>()
  await inParallel(targets, AT_ONCE, async (target) => {
    const isGone = await endOne({ world, termination, kill, signal, hasStore: living !== undefined }, target)
    if (isGone) gone.set(target.id, Math.round(performance.now() - began))
  })
  const left = await stillThere(world, kill)
  return targets.map(({ id, tenant }) => {
    const verified = gone.has(id) && left?.has(id) === false
    const { frozenMs = null, processes = null } = frozen.get(id) ?? {}
    const goneMs = verified ? (gone.get(id) ?? null) : null
    return { kill: kill.id, sandbox: id, tenant, node: world.node.id, frozenMs, goneMs, processes, verified }
  })
}

/** Tried until the data plane answers: it may be on its way back. */
async function freezeScope(world: World, kill: StoredKill, signal: AbortSignal): Promise<readonly Frozen[]> {
  const of = scopeOf(kill)
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
    try {
      return await world.dataPlane.freeze({ ...of, permitsUntil: world.clock.now() + PERMIT_LIFE_MS })
    } catch (error) {
      world.log.warn('what is killed does not stand still yet', { kill: kill.id, error })
    }
    if (!(await pause(pauseMs, signal))) return []
  }
}

/** What the store has of this node; undefined when it does not say. */
async function findLiving(world: World, kill: StoredKill): Promise<readonly LivingPlace[] | undefined> {
  try {
    const living = await within(
      STORE_MS,
      world.store.query((db) => listLivingIn(db, kill)),
    )
    return living.filter(({ node }) => node === world.node.id)
  } catch (error) {
    world.log.warn('a kill goes by what the data plane has', { kill: kill.id, error })
    return undefined
  }
}

/** What the store knows, and what the data plane has: either alone may have missed one. */
function findTargets(
  kill: StoredKill,
  living: readonly LivingPlace[],
  frozen: ReadonlyMap<string, Frozen>,
): readonly Target[] {
  const rows = living.map(({ id, tenant, state }) => ({ id, tenant, isStarting: state === 'creating' }))
  const ids = new Set(rows.map(({ id }) => id))
  const others = [...frozen.keys()].filter((id) => !ids.has(id))
  return [...rows, ...others.map((id) => ({ id, tenant: kill.tenant, isStarting: false }))]
}

interface Run {
  readonly world: World
  readonly termination: Pick<Termination, 'terminate'>
  readonly kill: StoredKill
  readonly signal: AbortSignal
  /** Whether the store answered when this run began. */
  readonly hasStore: boolean
}

/** Each further try freezes and kills anew. False when it may still live. */
async function endOne(run: Run, target: Target): Promise<boolean> {
  const { world, kill, signal } = run
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
    try {
      await endOnce(run, target)
      return true
    } catch (error) {
      world.log.warn('what is killed does not end yet', { kill: kill.id, sandbox: target.id, error })
    }
    if (!(await pause(pauseMs, signal))) return false
    await world.dataPlane
      .freeze({ tenant: null, agent: null, sandbox: target.id, permitsUntil: world.clock.now() + PERMIT_LIFE_MS })
      // The next try says why.
      .catch(() => undefined)
  }
}

async function endOnce({ world, termination, kill, hasStore }: Run, { id, isStarting }: Target): Promise<void> {
  // Each would wait for the store to fail again: the data plane ends it at once, and the sweep writes its row.
  if (!hasStore) return void (await world.dataPlane.stop(id, 'killed'))
  if (isStarting) await world.dataPlane.stop(id, 'killed')
  try {
    await termination.terminate(id, { reason: 'killed', actor: kill.actor })
  } catch (error) {
    // Without a row, or without a store, the data plane alone knows it; the sweep writes its row.
    if (!isOfStore(error)) throw error
    await world.dataPlane.stop(id, 'killed')
  }
}

function isOfStore(error: unknown): boolean {
  return !isAirlockError(error) || error.code === 'store_unavailable' || error.code === 'sandbox_not_found'
}

/** Undefined when nobody can say. */
async function stillThere(world: World, kill: StoredKill): Promise<ReadonlySet<string> | undefined> {
  try {
    return new Set((await world.dataPlane.list()).map(({ id }) => id))
  } catch (error) {
    world.log.warn('nobody can say whether everything is gone', { kill: kill.id, error })
    return undefined
  }
}

function scopeOf({ scope, tenant, target }: StoredKill) {
  if (scope === 'sandbox') return { tenant: null, agent: null, sandbox: target }
  if (scope === 'agent') return { tenant, agent: target, sandbox: null }
  return { tenant: scope === 'tenant' ? tenant : null, agent: null, sandbox: null }
}

/** False when there is no time left. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, signal).then(
    () => true,
    () => false,
  )
}
