import type { EndReason } from '@airlock/contract'
import { listOtherNodes, type OtherNode } from '../store/nodes.ts'
import { listLiving, type StoredSandbox } from '../store/sandboxes.ts'
import type { Context } from '../app/context.ts'
import { NODE_LOST } from '../sandboxes/end-cause.ts'
import { writeEnd } from '../sandboxes/terminate.ts'

/** A node that lives gives a sign of life every second. */
const SILENT_MS = 60_000
/** How many looks in a row must find the same last sign: a store that was away, or whose clock jumped, makes nobody silent. */
const SILENT_LOOKS = 6

type World = Pick<Context, 'store' | 'node' | 'clock' | 'audit' | 'log'>

/**
 * Ends the rows of nodes that do not come back, so that names, places and budgets are not held for ever. Only a node that gave no
 * sign of life is looked at, and its rows go by its own clock: what that said at the last sign, and how long ago that is by the clock
 * of the store. Should the node live after all, it removes what it has without a living row.
 */
export class LostNodes {
  readonly #world: World
  #silent: ReadonlyMap<string, { readonly beat: number; readonly looks: number }> = new Map()

  constructor(world: World) {
    this.#world = world
  }

  async look(): Promise<void> {
    const { store, node, clock } = this.#world
    const before = this.#silent
    // A look that fails begins anew.
    this.#silent = new Map()
    const others = await store.query((db) => listOtherNodes(db, { node: node.id, now: store.now(clock) }))
    this.#silent = new Map(
      others.map(({ id, beat }) => {
        const last = before.get(id)
        return [id, { beat, looks: last?.beat === beat ? last.looks + 1 : 0 }]
      }),
    )
    for (const other of others)
      if (other.silentMs >= SILENT_MS && (this.#silent.get(other.id)?.looks ?? 0) >= SILENT_LOOKS)
        await this.#writeOff(other)
  }

  async #writeOff(other: OtherNode): Promise<void> {
    const now = other.clockAt + other.silentMs
    for (const row of await this.#world.store.query((db) => listLiving(db, other.id))) {
      const over = lease(row)
      if (now >= over.at) await this.#end(row, { ...over, aliveAt: other.clockAt })
    }
  }

  /** Recorded here, for the chain of that node is out of reach: what became of the sandbox is not known. */
  async #end(row: StoredSandbox, end: Lease & { readonly aliveAt: number }): Promise<void> {
    const { store, audit, log } = this.#world
    const { id: sandbox, tenant, agent, node } = row
    const { reason, aliveAt } = end
    const changes = { endedAt: Math.max(end.at, row.createdAt), endReason: reason, error: NODE_LOST, recorded: true }
    try {
      await store.transaction(async (db) => writeEnd(db, row, { to: 'error', changes, usage: null, aliveAt }))
    } catch (error) {
      // Another node was faster, or its own is back.
      return log.warn('a sandbox of a lost node could not be written off', { sandbox, node, error })
    }
    const about = { point: 'sandbox.terminate', status: 'unknown', error: NODE_LOST, payload: { node } } as const
    audit.note({ tenant, agent, sandbox, actor: 'system', ...about })
  }
}

interface Lease {
  readonly at: number
  readonly reason: EndReason
}

/** Until when a sandbox could be used, or go on by itself, without its node. */
function lease(row: StoredSandbox): Lease {
  // Nobody can finish these but their node.
  if (row.state === 'creating') return { at: row.createdAt, reason: 'create_interrupted' }
  if (row.state === 'stopping') return { at: row.lastActiveAt, reason: row.endReason ?? 'terminated' }
  const first: Lease =
    row.state === 'paused'
      ? { at: (row.pausedAt ?? row.createdAt) + row.maxPausedMs, reason: 'paused_too_long' }
      : { at: row.expiresAt, reason: 'ttl' }
  return first.at < row.endsAt ? first : { at: row.endsAt, reason: 'max_lifetime' }
}
