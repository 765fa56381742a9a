import { AirlockError } from '@airlock/contract'
import { type Clock, deadline, type Log, sleep, waitFor } from '@airlock/std'
import {
  adoptRows,
  beatNode,
  findNode,
  insertNodeIfAbsent,
  releaseNode,
  type SignTimes,
  type StoredNode,
  takeNode,
} from '../store/nodes.ts'
import type { Store } from '../store/engine/store.ts'
import type { NodeIdentity } from './node-identity.ts'

export interface LeaseTimes {
  /** Between two signs of life. */
  readonly beatMs: number
  /** The same where nobody waits for them, and they only say later how long we lived. */
  readonly aloneMs: number
  /** A holder that gave no sign for so long, by the watch of whoever waits, is gone. */
  readonly silentMs: number
  /** How long a sign of life lets us go on: shorter than `silentMs`, so that we stop before another may begin. */
  readonly heldMs: number
  /** A store that keeps a sign of life waiting for so long does not answer. */
  readonly patienceMs: number
  /** How long a claim waits for silence. */
  readonly claimMs: number
}

const TIMES: LeaseTimes = {
  beatMs: 1_000,
  aloneMs: 10_000,
  silentMs: 10_000,
  heldMs: 8_000,
  patienceMs: 1_000,
  claimMs: 20_000,
}
const LOOK_MS = 250

export interface LeaseOptions {
  readonly store: Store
  readonly node: NodeIdentity
  readonly clock: Clock
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
  /** Since when a sign of life waits for the store; undefined when none does. */
  #askedAt: number | undefined
  #isRefused = false
  #aliveBefore = 0

  constructor(options: LeaseOptions) {
    this.#options = options
    this.#times = options.times ?? TIMES
  }

  /** Whether nobody else can have become this node since our last sign of life. */
  get isHeld(): boolean {
    return !this.#options.store.isShared || performance.now() - this.#renewedAt < this.#times.heldMs
  }

  /** Whether the store took the last sign of life, and keeps none waiting: it is known much sooner than that another may take over. */
  get isAnswered(): boolean {
    if (!this.#options.store.isShared) return true
    const waitedMs = this.#askedAt === undefined ? 0 : performance.now() - this.#askedAt
    return !this.#isRefused && waitedMs < this.#times.patienceMs
  }

  async claim(): Promise<void> {
    const { store, node } = this.#options
    const { id } = node
    const fresh: StoredNode = { id, url: '', holder: '', beat: 0, seenAt: 0, clockAt: 0, auditKey: null }
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

  /** The last sign of life before the claim, by the clock of this node. */
  get aliveBefore(): number {
    return this.#aliveBefore
  }

  start(): void {
    this.#running = this.#run()
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
    const taken = await store.transaction((db) => takeNode(db, seen, { holder: node.holder, ...this.#signTimes() }))
    if (!taken) return undefined
    this.#renewedAt = at
    this.#aliveBefore = seen.clockAt
    return true
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      // Woken early only by the stop, which the loop sees.
      await sleep(this.#options.store.isShared ? this.#times.beatMs : this.#times.aloneMs, this.#stop.signal).catch(
        () => undefined,
      )
      if (!this.#stop.signal.aborted && !(await this.#beat())) return this.#options.onDisplaced()
    }
  }

  #signTimes(): SignTimes {
    const { store, clock } = this.#options
    return { seenAt: store.now(clock), clockAt: clock.now() }
  }

  /** False when another is this node now. A store that does not answer proves nothing, and nothing is granted then. */
  async #beat(): Promise<boolean> {
    const { store, node, log } = this.#options
    const at = performance.now()
    this.#askedAt = at
    try {
      if (!(await store.query((db) => beatNode(db, node, this.#signTimes())))) {
        log.error('another server is this node now', { node: node.id })
        return false
      }
      this.#renewedAt = at
      this.#isRefused = false
    } catch (error) {
      this.#isRefused = true
      log.warn('no sign of life could be written', { error })
    } finally {
      this.#askedAt = undefined
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
