import { AirlockError } from '@airlock/contract'
import { findKillOf, type StoredKill } from '../store/kills.ts'
import type { Queries } from '../store/engine/store.ts'

/** Whom or what something is about; null where it is not about one. */
export interface Concern {
  readonly tenant: string
  readonly agent: string | null
  readonly sandbox: string | null
}

/** A killswitch that is on, and whether the store has it. */
export interface KillOn extends StoredKill {
  readonly isPersisted: boolean
}

/**
 * The killswitches that are on, in memory: whatever grants asks here first, also when the store does not answer. The sweep
 * reads it anew every second, for other nodes turn them on too.
 */
export class KillList {
  readonly #on = new Map<string, KillOn>()
  /** By id, until the store does not have them on any more. */
  readonly #lifted = new Set<string>()

  get kills(): readonly KillOn[] {
    return [...this.#on.values()]
  }

  add(kill: KillOn): void {
    this.#on.set(nameOf(kill), kill)
  }

  find(of: Pick<StoredKill, 'scope' | 'tenant' | 'target'>): KillOn | undefined {
    return this.#on.get(nameOf(of))
  }

  /** It was lifted here. */
  remove(kill: KillOn): void {
    this.#on.delete(nameOf(kill))
    this.#lifted.add(kill.id)
  }

  /**
   * What the store says counts, for what was on when it was asked: `asked` is `kills` from before. What was turned on or lifted
   * here meanwhile, or is not in the store yet, stays as it is.
   */
  replace(stored: readonly StoredKill[], asked: readonly KillOn[]): void {
    const found = new Set(stored.map(({ id }) => id))
    for (const kill of asked)
      if (kill.isPersisted && !found.has(kill.id) && this.find(kill)?.id === kill.id) this.#on.delete(nameOf(kill))
    for (const kill of stored)
      if (!this.#lifted.has(kill.id)) this.#on.set(nameOf(kill), { ...kill, isPersisted: true })
    for (const id of this.#lifted) if (!found.has(id)) this.#lifted.delete(id)
  }

  covers(of: Concern): KillOn | undefined {
    if (this.#on.size === 0) return undefined
    const { tenant, agent, sandbox } = of
    return (
      this.find({ scope: 'all', tenant: '', target: '' }) ??
      this.find({ scope: 'tenant', tenant, target: '' }) ??
      (agent === null ? undefined : this.find({ scope: 'agent', tenant, target: agent })) ??
      (sandbox === null ? undefined : this.find({ scope: 'sandbox', tenant, target: sandbox }))
    )
  }

  /** Nothing is granted to what is killed. */
  assertAlive(of: Concern): void {
    const kill = this.covers(of)
    if (kill) throw refusal(kill)
  }
}

/** The same, from the store: in the transaction that takes a place, whoever turned it on a moment ago. */
export async function assertNotKilled(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string },
): Promise<void> {
  const kill = await findKillOf(db, of)
  if (kill) throw refusal(kill)
}

function refusal({ scope, target, tenant }: StoredKill): AirlockError {
  const what = scope === 'all' ? 'everything' : `the ${scope} ${target === '' ? tenant : target}`
  return new AirlockError('killed', `A killswitch is on for ${what}.`)
}

/** None of these can hold a slash. */
function nameOf({ scope, tenant, target }: Pick<StoredKill, 'scope' | 'tenant' | 'target'>): string {
  return `${scope}/${tenant}/${target}`
}
