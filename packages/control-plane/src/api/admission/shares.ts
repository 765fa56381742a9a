import type { Principal } from '@airlock/contract'

/** A caller: a key or a subject, of a tenant. */
export type Holder = Pick<Principal, 'tenant' | 'actor'>

/** The bound that refused. */
export type Bound = 'caller' | 'tenant'

interface Tenant {
  held: number
  readonly callers: Map<string, number>
}

/**
 * Divides a number of connections, requests or bytes between callers. A tenant holds at most half of what other tenants leave;
 * a caller holds at most half of what other callers leave of that. So something is always left for the next tenant.
 */
export class Shares {
  readonly #whole: number
  readonly #tenants = new Map<string, Tenant>()
  #held = 0

  constructor(whole: number) {
    this.#whole = whole
  }

  /** Takes the amount, or takes nothing and returns the bound that refused. */
  take({ tenant, actor }: Holder, amount = 1): Bound | undefined {
    const known = this.#tenants.get(tenant)
    const ofTenant = known?.held ?? 0
    const ofCaller = known?.callers.get(actor) ?? 0
    const tenantMost = (this.#whole - (this.#held - ofTenant)) / 2
    if (ofTenant + amount > tenantMost) return 'tenant'
    if (ofCaller + amount > (tenantMost - (ofTenant - ofCaller)) / 2) return 'caller'
    this.#add({ tenant, actor }, amount)
    return undefined
  }

  /** Precondition: the holder took at least that much. */
  give(holder: Holder, amount = 1): void {
    this.#add(holder, -amount)
  }

  /** Callers that hold more, the largest first: those of larger tenants, then those of the same tenant. */
  largerThan({ tenant, actor }: Holder): readonly Holder[] {
    const own = this.#tenants.get(tenant)
    const held = own?.callers.get(actor) ?? 0
    const larger = [...this.#tenants].filter(([, other]) => isLarger(other.held, own?.held ?? 0))
    const siblings = own ? callersAbove([tenant, own], held) : []
    const others = larger.toSorted(([, a], [, b]) => b.held - a.held)
    return [...others.flatMap((other) => callersAbove(other, held)), ...siblings]
  }

  #add({ tenant, actor }: Holder, amount: number): void {
    const known = this.#tenants.get(tenant) ?? { held: 0, callers: new Map<string, number>() }
    const ofCaller = (known.callers.get(actor) ?? 0) + amount
    known.held += amount
    this.#held += amount
    if (ofCaller > 0) known.callers.set(actor, ofCaller)
    else known.callers.delete(actor)
    if (known.callers.size > 0) this.#tenants.set(tenant, known)
    else this.#tenants.delete(tenant)
  }
}

function callersAbove([tenant, { callers }]: readonly [string, Tenant], held: number): readonly Holder[] {
  const above = [...callers].filter(([, amount]) => isLarger(amount, held))
  return above.toSorted(([, a], [, b]) => b - a).map(([actor]) => ({ tenant, actor }))
}

/** By more than one: two equal holders would otherwise take from each other in turn. */
function isLarger(one: number, other: number): boolean {
  return one > other + 1
}
