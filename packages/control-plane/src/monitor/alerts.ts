import type { Alert, AlertCounts, EndedFor, MetricEvent } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import type { Termination } from '../sandboxes/terminate.ts'
import type { StoredAlert } from '../store/alerts.ts'
import { AlertBook, type AlertStore } from './alert-book.ts'
import { judgeExhaustion, type Strain, UNSTRAINED } from './exhaustion.ts'
import { KillActions } from './kill-actions.ts'
import type { Judge, Observed } from './observed.ts'
import { type AlertChange, type AlertRules, SandboxWatch, type WatchedSandbox } from './sandbox-watch.ts'

/** Rounds in a row without a sample, after which a sandbox is over with all that was raised for it. */
const MISSED = 3
const NONE: AlertCounts = { warning: 0, critical: 0 }

type World = AlertStore & Pick<Context, 'audit' | 'webhooks' | 'dataPlane' | 'clock'>

interface Parts {
  readonly rules: AlertRules & { readonly endedFor: readonly EndedFor[] }
  readonly termination: Pick<Termination, 'terminate'>
  /** What is waited after the first failure to end a sandbox. */
  readonly firstPauseMs?: number
}

/** A sandbox that is looked at. */
interface Seen {
  readonly watch: SandboxWatch
  strain: Strain
  missed: number
  /** Its end was decided, which happens once. */
  isEnding: boolean
}

/** Raises alerts and clears them, and ends what exhausted something: see docs/monitor.md. */
export class Alerts implements Judge {
  readonly #world: World
  readonly #rules: Parts['rules']
  readonly #book: AlertBook
  readonly #kills: KillActions
  /** Undefined until the store has said what was raised before. */
  #seen: Map<string, Seen> | undefined
  #reading: Promise<void> | undefined
  /** How much was raised before this process for sandboxes that were not seen yet. */
  #raisedBefore = new Map<string, AlertCounts>()

  constructor(world: World, { rules, ...means }: Parts) {
    this.#world = world
    this.#rules = rules
    this.#book = new AlertBook(world)
    this.#kills = new KillActions(world, means)
  }

  judge(round: readonly Observed[]): readonly MetricEvent[] {
    const seen = this.#seen
    if (!seen) return this.#read()
    const events = round.flatMap((observed) => this.#look(seen, observed))
    this.#miss(seen, new Set(round.map(({ row }) => row.id)))
    void this.#book.flush()
    return events
  }

  of(sandbox: string): { readonly alerts: readonly Alert[]; readonly raised: AlertCounts } {
    const watch = this.#seen?.get(sandbox)?.watch
    return watch ? { alerts: watch.alerts, raised: watch.raised } : { alerts: [], raised: NONE }
  }

  /** Ends nothing more, and writes what is to be written. */
  async stop(): Promise<void> {
    await this.#kills.stop()
    await this.#reading
    await this.#book.flush()
  }

  /** Waits for what follows from the rounds until now. */
  async settled(): Promise<void> {
    await this.#reading
    await this.#kills.settled()
    await this.#book.flush()
  }

  /** Nothing is judged before it is known what was raised: it would be raised twice. Tried with each round. */
  #read(): readonly MetricEvent[] {
    this.#reading ??= this.#book
      .read()
      .then(({ open, raised }) => {
        this.#raisedBefore = new Map(raised)
        const bySandbox = Map.groupBy(open, ({ sandbox }) => sandbox)
        const seen = new Map<string, Seen>()
        for (const [id, alerts] of bySandbox)
          for (const first of alerts.slice(0, 1)) seen.set(id, this.#begin(first, alerts))
        this.#seen = seen
      })
      .catch((error: unknown) => this.#world.log.warn('it is not known which alerts are open', { error }))
      .finally(() => (this.#reading = undefined))
    return []
  }

  #look(seen: Map<string, Seen>, observed: Observed): readonly MetricEvent[] {
    const { row } = observed
    const { id, tenant, agent } = row
    const one = seen.get(id) ?? this.#begin({ sandbox: id, tenant, agent }, [])
    seen.set(id, one)
    one.missed = 0
    if (row.state !== 'active' && row.state !== 'paused') return []
    // What stands still exhausts nothing.
    if (row.state === 'active') this.#judgeExhaustion(one, observed)
    return one.watch.see(observed, this.#rules).map((change) => this.#tell(one.watch, change))
  }

  #begin(of: WatchedSandbox, open: readonly StoredAlert[]): Seen {
    const { sandbox, tenant, agent } = of
    const raised = this.#raisedBefore.get(sandbox) ?? NONE
    this.#raisedBefore.delete(sandbox)
    return {
      watch: new SandboxWatch({ sandbox, tenant, agent }, { open, raised }),
      strain: UNSTRAINED,
      missed: 0,
      isEnding: false,
    }
  }

  #judgeExhaustion(one: Seen, observed: Observed): void {
    const { strain, found } = judgeExhaustion(one.strain, observed)
    one.strain = strain
    const first = found.find(({ endedFor }) => this.#rules.endedFor.includes(endedFor))
    if (!first || one.isEnding) return
    one.isEnding = true
    this.#kills.start({ of: one.watch.of, found: first })
  }

  /** One that is not sampled once may be on its way; who follows it hears of its end from others. */
  #miss(seen: Map<string, Seen>, ids: ReadonlySet<string>): void {
    for (const [id, one] of seen) {
      if (ids.has(id) || ++one.missed < MISSED) continue
      seen.delete(id)
      for (const change of one.watch.end(this.#world.clock.now())) this.#tell(one.watch, change)
    }
  }

  #tell(watch: SandboxWatch, alert: AlertChange): MetricEvent {
    const { audit, webhooks } = this.#world
    const { tenant, agent, sandbox } = watch.of
    const { change, resource, level, was, percent, threshold } = alert
    const at = new Date(alert.at).toISOString()
    for (const id of alert.closed) this.#book.clear(id, alert.at)
    if (alert.opened) this.#book.open(alert.opened)
    const payload = { resource, level, was, percent, threshold, cleared: level === null }
    audit.note({ tenant, agent, sandbox, actor: 'system', point: 'monitor.alert', status: 'done', payload })
    webhooks.send(tenant, 'alert', { change, sandbox, agent, resource, level, was, percent, threshold, at })
    const now = watch.alerts.find((one) => one.resource === resource)
    return now ? { event: 'alert', alert: now } : { event: 'cleared', sandbox, resource, at }
  }
}
