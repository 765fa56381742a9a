import type { MetricEvent } from '@airlock/contract'

/** Who takes nothing while so much happens is let go, and may come again. */
const MOST_UNREAD = 512

/** Those who follow what sandboxes use, each with what was not read yet. */
export class Followers {
  readonly #of = new Map<string, Set<Follower>>()

  /** From `first` on, until it has ended or the signal aborts. `since` is the round that is over or under way. */
  follow(
    sandbox: string,
    of: { readonly first: readonly MetricEvent[]; readonly since: number; readonly onEnd: () => void },
    signal: AbortSignal,
  ): AsyncGenerator<MetricEvent> {
    const all = this.#of.get(sandbox) ?? new Set()
    const follower = new Follower(of, () => leave())
    this.#of.set(sandbox, all.add(follower))
    const leave = (): void => {
      follower.end()
      if (!all.delete(follower)) return
      if (all.size === 0) this.#of.delete(sandbox)
      of.onEnd()
    }
    // Whoever goes before it reads anything is gone all the same.
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    return readAll(follower, leave)
  }

  tell(events: readonly MetricEvent[]): void {
    if (this.#of.size === 0) return
    for (const event of events)
      for (const follower of this.#of.get(event.event === 'alert' ? event.alert.sandbox : event.sandbox) ?? [])
        follower.hear(event)
  }

  /** What does not live in a round has ended, unless it was made after the round began. */
  endOthers(living: ReadonlySet<string>, round: number): void {
    for (const [sandbox, all] of this.#of) {
      if (living.has(sandbox)) continue
      for (const follower of all) if (follower.since < round) follower.hear({ event: 'ended', sandbox })
    }
  }
}

class Follower {
  readonly since: number
  readonly #unread: MetricEvent[]
  readonly #leave: () => void
  #isOver = false
  #wake: (() => void) | undefined

  constructor(of: { readonly first: readonly MetricEvent[]; readonly since: number }, leave: () => void) {
    this.#unread = [...of.first]
    this.since = of.since
    this.#leave = leave
  }

  hear(event: MetricEvent): void {
    if (this.#isOver) return
    if (this.#unread.length >= MOST_UNREAD) return this.#leave()
    this.#unread.push(event)
    this.#wake?.()
  }

  end(): void {
    this.#isOver = true
    this.#unread.length = 0
    this.#wake?.()
  }

  /** Undefined when nothing will come any more. */
  async next(): Promise<MetricEvent | undefined> {
    while (this.#unread.length === 0 && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    return this.#unread.shift()
  }
}

async function* readAll(follower: Follower, leave: () => void): AsyncGenerator<MetricEvent> {
  try {
    for (;;) {
      const event = await follower.next()
      if (!event) return
      yield event
      if (event.event === 'ended') return
    }
  } finally {
    leave()
  }
}
