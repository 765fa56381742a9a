import { AirlockError } from '@airlock/contract'
import { findApiKey } from '../store/api-keys.ts'
import type { Queries, Store } from '../store/store.ts'
import type { Caller } from './core.ts'

/** How many rotations back a key is followed. */
const ROTATIONS = 16

/** Who answers is another than who asked. A key that took over from another is in the same hands. */
export async function assertOtherHand(store: Store, { principal }: Caller, requester: string): Promise<void> {
  const { actor } = principal
  const isSame =
    actor === requester ||
    (await store.query(async (db) => (await replaces(db, actor, requester)) || (await replaces(db, requester, actor))))
  if (isSame)
    throw new AirlockError('forbidden', 'Who asked for it does not answer it.', {
      hint: 'Let another principal answer.',
    })
}

async function replaces(db: Queries, actor: string, earlier: string): Promise<boolean> {
  let id = keyId(actor)
  for (let steps = 0; steps < ROTATIONS && id !== null; steps++) {
    id = (await findApiKey(db, id))?.replaces ?? null
    if (id !== null && id === keyId(earlier)) return true
  }
  return false
}

function keyId(actor: string): string | null {
  return actor.startsWith('key:') ? actor.slice('key:'.length) : null
}
