import type { MetricEvent, MetricSample, NodeSample } from '@airlock/contract'
import { sleep } from '@airlock/std'
import type { Context } from '../app/context.ts'
import { pruneAlerts } from '../store/alerts.ts'
import { listByIds, listLivingIds, LIVING_STATES, type StoredSandbox } from '../store/sandboxes.ts'
import type { Store } from '../store/engine/store.ts'
import { Followers } from './followers.ts'
import type { HostDiskAlert } from './host-disk-alert.ts'
import { History } from './history.ts'
import { nextTurn } from './next-turn.ts'
import type { Judge, Observed } from './observed.ts'
import { RoundCounts } from './round-counts.ts'
import { cpuPercentOf, joinSampled, type Sampled, toSampled } from './tally.ts'

/** Sandboxes that are looked at before others have their turn. */
const BATCH = 100
/** Between two rounds, however long the first took. */
const LEAST_PAUSE_MS = 100
/** A sample that is older than so many rounds, and so long, is not of now. */
const STALE_ROUNDS = 3
const STALE_MS = 10_000
const STOP_MS = 2_000
/** How long alerts that are over are kept. */
const ALERTS_MS = 7 * 24 * 3600 * 1000
const HOUR_MS = 3600 * 1000

type World = Pick<Context, 'store' | 'node' | 'dataPlane' | 'readiness' | 'clock' | 'log'>

/** A sandbox as the last round saw it. */
export interface Seen extends Observed {
  readonly sampled: Sampled
}

/**
 * Looks at every living sandbox of this node again and again: one question to the data plane a round. Rounds never overlap, one that fails is
 * skipped, and what they see is kept, judged, told to who follows it and written down.
 */
export class Monitor {
  readonly history: History
  readonly counts = new RoundCounts()
  readonly #world: World
  readonly #judge: Judge
  readonly #hostDisk: Pick<HostDiskAlert, 'look'> | undefined
  readonly #everyMs: number
  readonly #followers = new Followers()
  readonly #stop = new AbortController()
  #seen: ReadonlyMap<string, Seen> = new Map()
  #round = 0
  #forgetAt = 0
  #isFailing = false
  #isUnwritten = false
  #running: Promise<void> = Promise.resolve()

  constructor(
    world: World,
    options: { readonly judge: Judge; readonly everyMs: number; readonly hostDisk?: Pick<HostDiskAlert, 'look'> },
  ) {
    this.#world = world
    this.#judge = options.judge
    this.#hostDisk = options.hostDisk
    this.#everyMs = options.everyMs
    this.history = new History(world.store)
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Does not wait long for a round under way. The minute under way is written, as far as the store takes it. */
  async stop(): Promise<void> {
    this.#stop.abort()
    const over = new AbortController()
    await Promise.race([this.#running, sleep(STOP_MS, over.signal).catch(() => undefined)])
    over.abort()
    this.history.close(() => false)
    await this.#write()
  }

  /** One round. */
  async look(): Promise<void> {
    const { store, node, dataPlane } = this.#world
    this.#round += 1
    const rows = await readLiving(store, node.id)
    const { samples } = await dataPlane.metrics()
    // By now the store may be closed.
    if (this.#stop.signal.aborted) return
    const seen = await this.#see(rows, samples)
    this.#seen = seen
    const events = this.#judge.judge([...seen.values()])
    for (const event of events) if (isRaised(event, seen)) this.counts.raised(event.alert)
    await this.#tell(seen, events)
    this.#followers.endOthers(new Set(rows.map(({ id }) => id)), this.#round)
    await this.#remember(seen)
    await this.#write()
  }

  /** What the last rounds saw of the sandboxes that lived. */
  latest(): readonly Seen[] {
    return [...this.#seen.values()].filter((seen) => this.#isOfNow(seen))
  }

  latestOf(sandbox: string): MetricSample | null {
    const seen = this.#seen.get(sandbox)
    return seen && this.#isOfNow(seen) ? seen.sample : null
  }

  /** What a sandbox is beyond and its latest sample, then everything new; `ended` is the last. */
  follow(sandbox: string, onEnd: () => void, signal: AbortSignal): AsyncGenerator<MetricEvent> {
    const sample = this.latestOf(sandbox)
    const alerts = this.#judge.of(sandbox).alerts.map((alert) => ({ event: 'alert', alert }) as const)
    const first = [...alerts, ...(sample ? [{ event: 'sample', sandbox, sample } as const] : [])]
    return this.#followers.follow(sandbox, { first, since: this.#round, onEnd }, signal)
  }

  #isOfNow({ sampled }: Seen): boolean {
    return sampled.at >= this.#world.clock.now() - Math.max(STALE_ROUNDS * this.#everyMs, STALE_MS)
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const began = performance.now()
      if (this.#world.readiness.isNodeHeld) await this.#attempt(began)
      this.#hostDisk?.look()
      const pauseMs = Math.max(LEAST_PAUSE_MS, this.#everyMs - (performance.now() - began))
      // Woken early only by the stop, which the loop sees.
      await sleep(pauseMs, this.#stop.signal).catch(() => undefined)
    }
  }

  async #attempt(began: number): Promise<void> {
    const { log } = this.#world
    try {
      await this.look()
      this.counts.done(performance.now() - began)
      if (this.#isFailing) log.info('the monitor sees again')
      this.#isFailing = false
    } catch (error) {
      this.counts.failed()
      if (!this.#isFailing) log.warn('the monitor does not see', { error })
      this.#isFailing = true
    }
  }

  /** What cannot be written waits; what is judged does not. */
  async #write(): Promise<void> {
    const { clock, log } = this.#world
    try {
      const lost = await this.history.write()
      if (lost > 0) log.warn('metrics were lost, for the store took none', { minutes: lost })
      await this.history.shrink(clock.now())
      await this.#forgetAlerts(clock.now())
      this.#isUnwritten = false
    } catch (error) {
      if (!this.#isUnwritten) log.warn('metrics are not written yet', { error })
      this.#isUnwritten = true
    }
  }

  async #forgetAlerts(now: number): Promise<void> {
    if (now < this.#forgetAt) return
    this.#forgetAt = now + HOUR_MS
    await this.#world.store.quick((db) => pruneAlerts(db, now - ALERTS_MS))
  }

  async #see(rows: readonly StoredSandbox[], samples: readonly NodeSample[]): Promise<ReadonlyMap<string, Seen>> {
    const byId = new Map(samples.map((sample) => [sample.id, sample]))
    const seen = new Map<string, Seen>()
    for (const [i, row] of rows.entries()) {
      if (i % BATCH === BATCH - 1) await nextTurn()
      const sample = byId.get(row.id)
      if (sample && (row.state === 'active' || row.state === 'paused'))
        seen.set(row.id, seenOf(row, sample, this.#seen.get(row.id)?.sample))
    }
    return seen
  }

  async #tell(seen: ReadonlyMap<string, Seen>, events: readonly MetricEvent[]): Promise<void> {
    let i = 0
    for (const [sandbox, { sample }] of seen) {
      this.#followers.tell([{ event: 'sample', sandbox, sample }])
      if (++i % BATCH === 0) await nextTurn()
    }
    this.#followers.tell(events)
  }

  async #remember(seen: ReadonlyMap<string, Seen>): Promise<void> {
    const agents = new Map<string, [Sampled, ...Sampled[]]>()
    let i = 0
    for (const [sandbox, { row, sampled }] of seen) {
      this.history.add(sandbox, sampled)
      const subject = agentSubject(this.#world.node.id, row)
      const all = agents.get(subject)
      if (all) all.push(sampled)
      else agents.set(subject, [sampled])
      if (++i % BATCH === 0) await nextTurn()
    }
    for (const [subject, all] of agents) this.history.add(subject, joinSampled(all))
    this.history.close((subject) => seen.has(subject) || agents.has(subject))
  }
}

/** All rows at once would hold up everybody else. */
async function readLiving(store: Store, node: string): Promise<readonly StoredSandbox[]> {
  const ids = await store.query((db) => listLivingIds(db, node))
  const rows: StoredSandbox[] = []
  for (let from = 0; from < ids.length; from += BATCH) {
    const [first = '', ...others] = ids.slice(from, from + BATCH)
    // As many as ever, for a statement of each length would be kept.
    const more = Array.from({ length: BATCH - 1 - others.length }, () => first)
    rows.push(...(await store.query((db) => listByIds(db, [first, ...others, ...more]))))
    await nextTurn()
  }
  return rows.filter(({ state }) => LIVING_STATES.some((living) => living === state))
}

/** Under what the history has the sandboxes of an agent on a node together. Ids of sandboxes have no slash. */
export function agentSubject(node: string, of: { readonly tenant: string; readonly agent: string }): string {
  return `${node}/${of.tenant}/${of.agent}`
}

/** One that was eased is told too, and is as old as it was before. */
function isRaised(event: MetricEvent, seen: ReadonlyMap<string, Seen>): event is MetricEvent & { event: 'alert' } {
  return event.event === 'alert' && event.alert.since === seen.get(event.alert.sandbox)?.sample.at
}

function seenOf(row: StoredSandbox, { id: _id, at, ...counted }: NodeSample, before: MetricSample | undefined): Seen {
  const told = { ...counted, at: new Date(at).toISOString(), cpuPercent: null }
  const sampled = toSampled(told, before)
  return { row, sample: { ...told, cpuPercent: cpuPercentOf(sampled) }, before, sampled }
}
