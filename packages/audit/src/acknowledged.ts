/** As many as one question may name. Far fewer than a recorder finds again in a chain. */
const MAX_KEPT = 1000

/** The newest records that are known to be in their chains, of this life and of the one before. */
export class Acknowledged {
  /** By record, oldest first: its tenant. */
  readonly #tenants = new Map<string, string>()

  add(tenant: string, rid: string): void {
    this.#tenants.set(rid, tenant)
    for (const oldest of this.#tenants.keys()) {
      if (this.#tenants.size <= MAX_KEPT) return
      this.#tenants.delete(oldest)
    }
  }

  of(tenant: string): readonly string[] {
    return [...this.#tenants].filter(([, owner]) => owner === tenant).map(([rid]) => rid)
  }

  /** Records of this chain were set aside: which of them are left is not known here. */
  forget(tenant: string): void {
    for (const rid of this.of(tenant)) this.#tenants.delete(rid)
  }
}
