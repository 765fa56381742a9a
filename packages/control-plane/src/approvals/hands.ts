import { AirlockError } from '@airlock/contract'
import { listKeyLine } from '../store/api-keys.ts'
import { findSandbox } from '../store/sandboxes.ts'
import type { Queries, Store } from '../store/engine/store.ts'
import type { Caller } from '../app/caller.ts'

/** Keys that are followed back from one key: a rotation every hour for more than a year. */
const MOST_KEYS = 10_000

/**
 * Who answers is another than who asked. A key that took over from another is in the same hands; and whoever made a key,
 * or rotated it, has seen it: so no key answers what was asked by one that it descends from. A key that answers for a
 * key that it made is another matter: that is how an admin answers those whom it gave keys. Keys of one person are in the
 * same hands, however they were made.
 */
export async function assertOtherHand(store: Store, { principal }: Caller, requester: string): Promise<void> {
  const { actor } = principal
  if (actor === requester || (await store.query((db) => isSameHand(db, actor, requester))))
    throw new AirlockError(
      'forbidden',
      'Who asked for it does not answer it, nor does a key of the same person or one that was made by who asked.',
      {
        hint: 'Let another person answer, whose key was made by somebody else.',
      },
    )
}

/** Those that `requester` took over from are in its hands; `actor` is in the hands of all that it comes from. */
async function isSameHand(db: Queries, actor: string, requester: string): Promise<boolean> {
  const asked = await actorsBehind(db, requester, 'rotations')
  const answers = await actorsBehind(db, actor, 'rotations and makers')
  return [...asked].some((one) => answers.has(one))
}

/** An actor and all from whom it comes, be they keys or not. Fails closed where they are too many. */
async function actorsBehind(
  db: Queries,
  actor: string,
  through: Parameters<typeof listKeyLine>[1]['through'],
): Promise<ReadonlySet<string>> {
  if (actor.startsWith('sandbox:'))
    return new Set([actor, ...(await actorsBehind(db, await makerOf(db, actor), through))])
  if (!actor.startsWith('key:')) return new Set(namesOf(actor))
  const line = await listKeyLine(db, { id: actor.slice('key:'.length), through, limit: MOST_KEYS + 1 })
  if (line.length > MOST_KEYS) throw new AirlockError('key_line_too_long')
  const makers = through === 'rotations' ? [] : line.flatMap(({ createdBy }) => namesOf(createdBy))
  const rotated = line.flatMap(({ replaces }) => (replaces === null ? [] : [`key:${replaces}`]))
  const persons = line.flatMap(({ person }) => (person === null ? [] : [personOf(person)]))
  return new Set([actor, ...rotated, ...makers, ...persons])
}

/** The subject of a token is a person too. */
function namesOf(actor: string): readonly string[] {
  return actor.startsWith('jwt:') ? [actor, personOf(actor.slice('jwt:'.length))] : [actor]
}

function personOf(name: string): string {
  return `person:${name.toLowerCase()}`
}

/** A program inside is in the hands of who made its sandbox. */
async function makerOf(db: Queries, actor: string): Promise<string> {
  const maker = (await findSandbox(db, actor.slice('sandbox:'.length)))?.actor
  if (maker === undefined) throw new AirlockError('sandbox_not_found')
  return maker
}
