import { AirlockError, type NodeSandbox, type Permit } from '@airlock/contract'
import { KeyedLock } from '@airlock/std'
import type { GuestLink } from '../session/guest-link.ts'
import { assertLiving, type Entry, isLiving } from './entry.ts'

/** The sandboxes that this process knows of, and the ways into them. */
export class Registry {
  /** What changes a sandbox takes its turn here: one after another for one sandbox. */
  readonly turns = new KeyedLock()
  /** Destroyed at our start because their state could not be read; until the control plane ends them. */
  readonly damaged = new Set<string>()
  readonly #entries = new Map<string, Entry>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get entries(): ReadonlyMap<string, Entry> {
    return this.#entries
  }

  /** Takes a place of the node for what a permit allows. */
  enter(id: string, entry: Entry): void {
    if (this.#entries.has(id)) throw new AirlockError('permit_rejected', 'The sandbox exists.')
    if (this.#entries.size >= this.#capacity)
      throw new AirlockError('capacity_exhausted', undefined, { retryAfterS: 5 })
    this.#entries.set(id, entry)
  }

  /** What lives already has its place, whatever the capacity is now. */
  adopt(id: string, entry: Entry): void {
    this.#entries.set(id, entry)
  }

  remove(id: string): void {
    this.damaged.delete(id)
    this.#entries.delete(id)
  }

  list(): readonly NodeSandbox[] {
    return [...this.#entries].map(([id, entry]) => ({
      id,
      tenant: entry.permit.tenant,
      agent: entry.permit.agent,
      state: entry.state,
      lostReason: entry.lostReason,
      ...(entry.lostFor ? { lostFor: entry.lostFor } : {}),
      runningCommands: entry.link.commands.runningCount,
      limits: entry.limits,
    }))
  }

  get livingIds(): readonly string[] {
    return [...this.#entries].filter(([, entry]) => isLiving(entry)).map(([id]) => id)
  }

  /** Images that something stands on, or is about to. */
  imagesInUse(): ReadonlySet<string> {
    return new Set([...this.#entries.values()].flatMap(({ image, permit }) => [image ?? permit.image, permit.image]))
  }

  living(id: string): Entry {
    const entry = this.#entries.get(id)
    assertLiving(entry)
    return entry
  }

  /** The way into a running sandbox. */
  link(id: string): GuestLink {
    return this.running(id).link
  }

  running(id: string): Entry {
    const entry = this.living(id)
    if (entry.state === 'paused') throw new AirlockError('sandbox_paused')
    return entry
  }

  /** The way to what a sandbox has said so far, also while it is paused. */
  said(id: string): GuestLink {
    return this.living(id).link
  }

  /** Whoever was fenced off by a newer generation of its agent starts nothing beside it. */
  assertCurrent(permit: Permit): void {
    for (const { permit: other } of this.#entries.values())
      if (other.tenant === permit.tenant && other.agent === permit.agent && other.generation > permit.generation)
        throw new AirlockError('permit_rejected', 'The permit is of an old generation of its agent.')
  }
}
