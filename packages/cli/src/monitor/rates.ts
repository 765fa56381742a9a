import type { SandboxNow } from '@airlock/sdk'

/** Bytes per second. */
export interface Rate {
  readonly read: number | null
  readonly written: number | null
}

interface Seen {
  readonly at: number
  readonly read: number | null
  readonly written: number | null
  readonly rate: Rate | undefined
}

/** Makes rates of the counters of two samples. Remembers only what lives. */
export class Rates {
  #seen: ReadonlyMap<string, Seen> = new Map()

  /** With what is new of each sandbox. A sample that was seen before changes nothing. */
  update(sandboxes: readonly Pick<SandboxNow, 'sandbox' | 'now'>[]): void {
    this.#seen = new Map(
      sandboxes.flatMap(({ sandbox, now }) => {
        const before = this.#seen.get(sandbox)
        if (now === null) return []
        const seen = { at: Date.parse(now.at), read: now.readBytes, written: now.writtenBytes }
        if (before && before.at === seen.at) return [[sandbox, before] as const]
        return [[sandbox, { ...seen, rate: before && rateBetween(before, seen) }] as const]
      }),
    )
  }

  /** Undefined before its second sample. */
  of(sandbox: string): Rate | undefined {
    return this.#seen.get(sandbox)?.rate
  }
}

function rateBetween(before: Omit<Seen, 'rate'>, after: Omit<Seen, 'rate'>): Rate | undefined {
  const seconds = (after.at - before.at) / 1000
  if (seconds <= 0) return undefined
  const per = (a: number | null, b: number | null): number | null =>
    a === null || b === null ? null : Math.max(0, b - a) / seconds
  return { read: per(before.read, after.read), written: per(before.written, after.written) }
}
