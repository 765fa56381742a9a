interface Entry<T> {
  readonly item: T
}

/**
 * A queue that is fair between groups, and between the members of a group: groups take turns, and so do members. Items of one
 * member are first in, first out.
 */
export class FairQueue<T> {
  readonly #groups = new Map<string, Map<string, Set<Entry<T>>>>()

  get isEmpty(): boolean {
    return this.#groups.size === 0
  }

  /** Returns a function that takes the item out again. It does nothing after the item was shifted. */
  push([group, member]: readonly [group: string, member: string], item: T): () => void {
    const members = this.#groups.get(group) ?? new Map<string, Set<Entry<T>>>()
    const entries = members.get(member) ?? new Set()
    const entry = { item }
    this.#groups.set(group, members.set(member, entries.add(entry)))
    return () => {
      if (!entries.delete(entry) || entries.size > 0) return
      members.delete(member)
      if (members.size === 0) this.#groups.delete(group)
    }
  }

  shift(): T | undefined {
    for (const [group, members] of this.#groups)
      for (const [member, entries] of members)
        for (const entry of entries) {
          entries.delete(entry)
          moveToEnd(members, member, entries.size > 0)
          moveToEnd(this.#groups, group, members.size > 0)
          return entry.item
        }
    return undefined
  }
}

/** Maps keep the order in which keys were set. */
function moveToEnd<V>(map: Map<string, V>, key: string, isKept: boolean): void {
  const value = map.get(key)
  map.delete(key)
  if (isKept && value !== undefined) map.set(key, value)
}
