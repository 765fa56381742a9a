import { type Alert, type AlertCounts, type AlertLevel, type Threshold, type Watched, WATCHED } from '@airlock/contract'
import { newId } from '@airlock/std'
import type { StoredAlert } from '../store/alerts.ts'
import type { Observed } from './observed.ts'
import { percentsOf } from './percents.ts'
import { afterSample, levelOf, type Standing, standingAt } from './thresholds.ts'

/** From where on what is worth an alert, in percent of the limit; null is off. */
export interface AlertRules {
  /** Inodes are of the disk. */
  readonly thresholds: Readonly<Record<Exclude<Watched, 'inodes'>, Threshold | null>>
  /** Samples in a row that change a level. */
  readonly sustained: number
}

/** A level that was reached or left. */
export interface AlertChange {
  readonly change: 'raised' | 'escalated' | 'eased' | 'cleared'
  readonly resource: Watched
  /** Null when it is cleared. */
  readonly level: AlertLevel | null
  readonly was: AlertLevel | null
  readonly percent: number
  /** Which was reached, or left. */
  readonly threshold: number
  readonly at: number
  /** What is in the store from now on, and what is over there. */
  readonly opened: StoredAlert | null
  readonly closed: readonly string[]
}

type Opened = Pick<StoredAlert, 'id' | 'raisedAt' | 'threshold'>

/** One resource. What is critical may have been a warning before, and then both are open. */
interface Watching {
  readonly standing: Standing
  readonly open: Readonly<Partial<Record<AlertLevel, Opened>>>
  readonly percent: number
}

/** Whose it is. */
export interface WatchedSandbox {
  readonly sandbox: string
  readonly tenant: string
  readonly agent: string
}

/** What one sandbox is beyond, from sample to sample. It tells nobody: that is for who holds it. */
export class SandboxWatch {
  readonly of: WatchedSandbox
  readonly #resources = new Map<Watched, Watching>()
  #raised: AlertCounts

  /** `open` is what was raised for it before this process, and `raised` how much that was since its start. */
  constructor(of: WatchedSandbox, known: { readonly open: readonly StoredAlert[]; readonly raised: AlertCounts }) {
    this.of = of
    this.#raised = known.raised
    for (const alert of known.open) this.#know(alert)
  }

  get raised(): AlertCounts {
    return this.#raised
  }

  get alerts(): readonly Alert[] {
    const { sandbox, agent } = this.of
    return [...this.#resources].flatMap(([resource, { standing, open, percent }]) => {
      const level = levelOf(standing)
      const opened = level && open[level]
      if (!level || !opened) return []
      const since = new Date(opened.raisedAt).toISOString()
      return [{ sandbox, agent, resource, level, percent, threshold: opened.threshold, since }]
    })
  }

  /** What changes with one more sample. */
  see({ row, sample }: Observed, rules: AlertRules): readonly AlertChange[] {
    const percents = percentsOf(sample, row.limits)
    const at = Date.parse(sample.at)
    const isPaused = row.state === 'paused'
    const changes: AlertChange[] = []
    for (const resource of WATCHED) {
      const threshold = rules.thresholds[resource === 'inodes' ? 'disk' : resource]
      const before = this.#resources.get(resource) ?? UNWATCHED
      const percent = percents[resource]
      const standing = threshold
        ? afterSample(before.standing, { percent, isPaused }, { threshold, sustained: rules.sustained })
        : standingAt(null)
      const now = { ...before, standing, percent: percent ?? before.percent }
      this.#resources.set(resource, now)
      if (levelOf(standing) !== levelOf(before.standing))
        changes.push(this.#change({ resource, at, now }, { was: levelOf(before.standing), threshold }))
    }
    return changes
  }

  /** It is gone, and with it all that was raised for it. */
  end(at: number): readonly AlertChange[] {
    return [...this.#resources].flatMap(([resource, now]) => {
      const was = levelOf(now.standing)
      const over = { ...now, standing: standingAt(null) }
      return was === null ? [] : [this.#change({ resource, at, now: over }, { was, threshold: null })]
    })
  }

  #know(alert: StoredAlert): void {
    const { resource, level, percent } = alert
    const { standing, open } = this.#resources.get(resource) ?? UNWATCHED
    const worst = level === 'critical' || levelOf(standing) === 'critical' ? 'critical' : 'warning'
    this.#resources.set(resource, { standing: standingAt(worst), open: { ...open, [level]: alert }, percent })
  }

  #change(
    { resource, at, now }: { readonly resource: Watched; readonly at: number; readonly now: Watching },
    { was, threshold }: { readonly was: AlertLevel | null; readonly threshold: Threshold | null },
  ): AlertChange {
    const { percent, open } = now
    const level = levelOf(now.standing)
    const left = was === null ? undefined : open[was]
    const limit = (isWorse(level, was) ? level && threshold?.[level] : left?.threshold) ?? 0
    const since = isWorse(was, level) ? left : undefined
    const fresh = { resource, level: level ?? 'warning', percent, at }
    const opened = level && !open[level] ? this.#open(fresh, since, threshold) : null
    const over = LEVELS.filter((one) => isWorse(one, level))
    const closed = over.flatMap((one) => open[one]?.id ?? [])
    const kept = Object.fromEntries(Object.entries(open).filter(([one]) => !over.some((name) => name === one)))
    this.#resources.set(resource, { ...now, open: opened ? { ...kept, [opened.level]: opened } : kept })
    return { change: nameOf(level, was), resource, level, was, percent, threshold: limit, at, opened, closed }
  }

  /** What eases from `was` is no new alert: it has been there since it was raised as that. */
  #open(
    { at, ...alert }: Pick<StoredAlert, 'resource' | 'level' | 'percent'> & { readonly at: number },
    was: Opened | undefined,
    threshold: Threshold | null,
  ): StoredAlert {
    const { level } = alert
    if (!was) this.#raised = { ...this.#raised, [level]: this.#raised[level] + 1 }
    const times = { raisedAt: was?.raisedAt ?? at, clearedAt: null }
    return { id: newId('alr', at), ...this.of, ...alert, threshold: threshold?.[level] ?? 0, ...times }
  }
}

const LEVELS = ['warning', 'critical'] as const satisfies readonly AlertLevel[]
const UNWATCHED: Watching = { standing: standingAt(null), open: {}, percent: 0 }

const RANKS = { warning: 1, critical: 2 } as const satisfies Record<AlertLevel, number>
const rankOf = (level: AlertLevel | null) => (level === null ? 0 : RANKS[level])

function isWorse(level: AlertLevel | null, than: AlertLevel | null): boolean {
  return rankOf(level) > rankOf(than)
}

export function nameOf(level: AlertLevel | null, was: AlertLevel | null): AlertChange['change'] {
  if (level === null) return 'cleared'
  if (was === null) return 'raised'
  return isWorse(level, was) ? 'escalated' : 'eased'
}
