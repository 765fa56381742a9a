import { AirlockError } from '@airlock/contract'
import { findApiKey } from '../store/api-keys.ts'
import { findSandbox } from '../store/sandboxes.ts'
import type { Queries, Store } from '../store/engine/store.ts'
import type { Caller } from '../app/caller.ts'

/** How many keys are looked at on the way to those that nobody made. */
const MOST_KEYS = 64

/**
 * Who answers is another than who asked. A key that took over from another is in the same hands; and whoever made a key,
 * or rotated it, has seen it: so no key answers what was asked by one that it descends from. A key that answers for a
 * key that it made is another matter: that is how an admin answers those whom it gave keys.
 */
export async function assertOtherHand(store: Store, { principal }: Caller, requester: string): Promise<void> {
  const { actor } = principal
  if (actor === requester || (await store.query((db) => isSameHand(db, actor, requester))))
    throw new AirlockError(
      'forbidden',
      'Who asked for it does not answer it, nor does a key that was made by who asked.',
      {
        hint: 'Let another principal answer, whose key was made by somebody else.',
      },
    )
}

/** Those that `requester` took over from are in its hands; `actor` is in the hands of all that it comes from. */
async function isSameHand(db: Queries, actor: string, requester: string): Promise<boolean> {
  const asked = await trace(db, requester, ({ replaces }) => [replaces])
  const answers = await trace(db, actor, ({ replaces, createdBy }) => [replaces, createdBy])
  // Fails closed: whose hands they are in cannot be told.
  if (asked === undefined || answers === undefined) return true
  return [...asked].some((one) => answers.has(one))
}

interface Origin {
  /** The actor of the key before its rotation. */
  readonly replaces: string | null
  /** Who made it, be it a key or not. */
  readonly createdBy: string
}

/** An actor and all from whom it comes, by the ways that `next` names; undefined when they are too many. */
async function trace(
  db: Queries,
  actor: string,
  next: (of: Origin) => readonly (string | null)[],
): Promise<ReadonlySet<string> | undefined> {
  const found = new Set([actor])
  for (const one of found) {
    const origin = await findOrigin(db, one)
    for (const from of origin ? next(origin) : []) if (from !== null) found.add(from)
    if (found.size > MOST_KEYS) return undefined
  }
  return found
}

/** A program inside is in the hands of who made its sandbox. */
async function findOrigin(db: Queries, actor: string): Promise<Origin | undefined> {
  if (actor.startsWith('sandbox:')) {
    const maker = (await findSandbox(db, actor.slice('sandbox:'.length)))?.actor
    if (maker === undefined) throw new AirlockError('sandbox_not_found')
    return { replaces: maker, createdBy: maker }
  }
  const row = actor.startsWith('key:') ? await findApiKey(db, actor.slice('key:'.length)) : undefined
  return row && { replaces: row.replaces === null ? null : `key:${row.replaces}`, createdBy: row.createdBy }
}
