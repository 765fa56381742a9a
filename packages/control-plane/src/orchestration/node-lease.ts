import { AirlockError } from '@airlock/contract'
import { deadline, type Log, sleep, waitFor } from '@airlock/std'
import {
  adoptRows,
  beatNode,
  findNode,
  insertNodeIfAbsent,
  releaseNode,
  type StoredNode,
  takeNode,
} from '../store/nodes.ts'
import type { Store } from '../store/store.ts'
import type { NodeIdentity } from './node-identity.ts'

export interface LeaseTimes {
  /** Between two signs of life. */
  readonly beatMs: number
  /** A holder that gave no sign for so long, by the watch of whoever waits, is gone. */
  readonly silentMs: number
  /** How long a sign of life lets us go on: shorter than `silentMs`, so that we stop before another may begin. */
  readonly heldMs: number
  /** How long a claim waits for silence. */
  readonly claimMs: number
}

const TIMES: LeaseTimes = { beatMs: 1_000, silentMs: 10_000, heldMs: 8_000, claimMs: 20_000 }
const LOOK_MS = 250

export interface LeaseOptions {
  readonly store: Store
  readonly node: NodeIdentity
  readonly log: Log
  /** Another server has become this node: whatever we would do now, it does too. */
  readonly onDisplaced: () => void
  readonly times?: LeaseTimes
}

/**
 * The right to be a node: to judge its sandboxes and to write its chains of evidence. One server has it at a time, by a
 * sign of life in the store every second. A second one, made from a copy of the first one's home, waits until the first
 * has been silent for ten seconds, and gives up when it is not. Nobody's clock is compared with anybody else's.
 *
 * A store that is not shared has one server by the lock of its home, so there is nothing to wait for.
 */
export class NodeLease {
  readonly #options: LeaseOptions
  readonly #times: LeaseTimes
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #renewedAt = -Infinity

  constructor(options: LeaseOptions) {
    this.#options = options
    this.#times = options.times ?? TIMES
  }

  /** Whether nobody else can have become this node since our last sign of life. */
  get isHeld(): boolean {
    return !this.#options.store.isShared || performance.now() - this.#renewedAt < this.#times.heldMs
  }

  async claim(): Promise<void> {
    const { store, node } = this.#options
    const { id } = node
    const fresh: StoredNode = { id, url: '', holder: '', beat: 0, seenAt: 0, auditKey: null }
    await store.query((db) => insertNodeIfAbsent(db, fresh))
    if (!store.isShared) await store.transaction((db) => adoptRows(db, id))
    const watch = new SilenceWatch(this.#times.silentMs)
    const signal = deadline(this.#times.claimMs)
    try {
      await waitFor(async () => this.#attempt(watch), { signal, everyMs: LOOK_MS })
    } catch (error) {
      if (!signal.aborted) throw error
      throw new AirlockError('already_running', `Another server runs as node ${id}, at ${watch.url}.`, {
        hint: 'A node has one home: stop the other server first.',
      })
    }
  }

  start(): void {
    if (this.#options.store.isShared) this.#running = this.#run()
  }

  /** Whoever comes next need not wait. */
  async release(): Promise<void> {
    this.#stop.abort()
    await this.#running
    await this.#options.store
      .query((db) => releaseNode(db, this.#options.node))
      .catch((error: unknown) => this.#options.log.warn('the node is not released: the next start waits', { error }))
  }

  async #attempt(watch: SilenceWatch): Promise<true | undefined> {
    const { store, node } = this.#options
    const seen = await store.query((db) => findNode(db, node.id))
    if (!seen) throw new AirlockError('internal', 'The row of this node is gone.')
    const isOurs = !store.isShared || seen.holder === node.holder || seen.holder === ''
    if (!isOurs && !watch.isSilent(seen)) return undefined
    const at = performance.now()
    const taken = await store.transaction((db) => takeNode(db, seen, { holder: node.holder, at: Date.now() }))
    if (!taken) return undefined
    this.#renewedAt = at
    return true
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      // Woken early only by the stop, which the loop sees.
      await sleep(this.#times.beatMs, this.#stop.signal).catch(() => undefined)
      if (!this.#stop.signal.aborted && !(await this.#beat())) return this.#options.onDisplaced()
    }
  }

  /** False when another is this node now. A store that does not answer proves nothing, and nothing is granted then. */
  async #beat(): Promise<boolean> {
    const { store, node, log } = this.#options
    const at = performance.now()
    try {
      if (!(await store.query((db) => beatNode(db, node, Date.now())))) {
        log.error('another server is this node now', { node: node.id })
        return false
      }
      this.#renewedAt = at
    } catch (error) {
      log.warn('no sign of life could be written', { error })
    }
    return true
  }
}

/** How long a holder has given no sign of life, by our own clock. */
class SilenceWatch {
  url = ''
  readonly #silentMs: number
  #sign = ''
  #since = 0

  constructor(silentMs: number) {
    this.#silentMs = silentMs
  }

  isSilent(node: StoredNode): boolean {
    const sign = `${node.holder} ${node.beat}`
    this.url = node.url
    if (sign !== this.#sign) {
      this.#sign = sign
      this.#since = performance.now()
    }
    return performance.now() - this.#since >= this.#silentMs
  }
}
