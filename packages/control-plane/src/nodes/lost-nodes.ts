import type { EndReason } from '@airlock/contract'
import { listOtherNodes, type OtherNode } from '../store/nodes.ts'
import { listLiving, listOwedOfLost, type StoredSandbox } from '../store/sandboxes.ts'
import type { Context } from '../app/context.ts'
import type { Receipts } from '../evidence/receipts.ts'
import { NODE_LOST } from '../sandboxes/end-cause.ts'
import { writeEnd } from '../sandboxes/terminate.ts'

/** A node that lives gives a sign of life every second. */
const SILENT_MS = 60_000
/** How many looks in a row must find the same last sign: a store that was away, or whose clock jumped, makes nobody silent. */
const SILENT_LOOKS = 6

/** The node that wrote a sandbox off has its record acknowledged long before: should it not, this node sends one. */
const OWED_LOOKS = 6
const OWED_BATCH = 100

type World = Pick<Context, 'store' | 'node' | 'clock' | 'log'>

/**
 * Ends the rows of nodes that do not come back, so that names, places and budgets are not held for ever. Only a node that gave no
 * sign of life is looked at, and its rows go by its own clock: what that said at the last sign, and how long ago that is by the clock
 * of the store. Should the node live after all, it removes what it has without a living row.
 */
export class LostNodes {
  readonly #world: World
  readonly #receipts: Pick<Receipts, 'sandboxLost'>
  #silent: ReadonlyMap<string, { readonly beat: number; readonly looks: number }> = new Map()
  /** In how many looks in a row the record of a sandbox was owed. */
  #owed: ReadonlyMap<string, number> = new Map()

  constructor(world: World, receipts: Pick<Receipts, 'sandboxLost'>) {
    this.#world = world
    this.#receipts = receipts
  }

  async look(): Promise<void> {
    await this.#lookAtNodes()
    await this.#payOwed()
  }

  /** Sends the records that whoever wrote the sandboxes off did not get acknowledged before it died. */
  async #payOwed(): Promise<void> {
    const { store, node } = this.#world
    const owed = await store.query((db) => listOwedOfLost(db, { notOf: node.id, limit: OWED_BATCH }))
    this.#owed = new Map(owed.map(({ id }) => [id, (this.#owed.get(id) ?? 0) + 1]))
    for (const row of owed) if ((this.#owed.get(row.id) ?? 0) > OWED_LOOKS) this.#receipts.sandboxLost(row)
  }

  async #lookAtNodes(): Promise<void> {
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

  /** Recorded here, for the chain of that node is out of reach. The row owes its record until that is acknowledged. */
  async #end(row: StoredSandbox, lost: Lease & { readonly aliveAt: number }): Promise<void> {
    const { store, log } = this.#world
    const { id: sandbox, node } = row
    const { reason, aliveAt } = lost
    const changes = { endedAt: Math.max(lost.at, row.createdAt), endReason: reason, error: NODE_LOST }
    const end = { to: 'error', changes, usage: null, aliveAt } as const
    try {
      this.#receipts.sandboxLost((await store.transaction(async (db) => writeEnd(db, row, end))).over)
    } catch (error) {
      // Another node was faster, or its own is back.
      log.warn('a sandbox of a lost node could not be written off', { sandbox, node, error })
    }
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
