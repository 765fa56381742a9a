import { AirlockError, BOUNDS, type PutSecretBody, type SealKey, type Secret } from '@airlock/contract'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { type Deed, doRecorded, saying } from '../evidence/evidence.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import { listSecrets, putSecret, type StoredSecret, takeSecret } from '../store/secrets.ts'
import { assertUnbound } from '../tenants/overseer.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'guardian' | 'sealKey'>

/** Credentials of a tenant as ciphertext: this process has no key that opens one. Not yours is not found. */
export class Secrets {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** To which key a client seals. */
  async key(caller: Caller): Promise<SealKey> {
    assertUnbound(caller)
    return { ...(await this.#world.sealKey.read()), tenant: caller.principal.tenant }
  }

  async list(caller: Caller): Promise<readonly Secret[]> {
    assertUnbound(caller)
    const { store, sealKey } = this.#world
    const rows = await store.query((db) => listSecrets(db, caller.principal.tenant))
    const { keyId } = await sealKey.read()
    return rows.map((row) => toSecret(row, keyId))
  }

  /** A new value takes the place of the one before at the next call of a tool. */
  async put(caller: Caller, name: string, { origin, keyId, sealed }: PutSecretBody): Promise<Secret> {
    const { store, clock, guardian, sealKey } = this.#world
    const { tenant, actor } = caller.principal
    const deed = deedOf(caller, 'secret.put', { name, origin })
    await recordRefusal(this.#world, deed, async () => assertUnbound(caller))
    const passed = await guardian.pass(caller, deed)
    return doRecorded(this.#world, saying(passed, { keyId }), async () => {
      const own = await sealKey.read()
      if (keyId !== own.keyId) throw new AirlockError('secret_unavailable', 'It was sealed to the key of another node.')
      const now = clock.now()
      const row = await store.transaction(async (db) => {
        const all = await listSecrets(db, tenant)
        const before = all.find((one) => one.name === name)
        if (!before && all.length >= BOUNDS.secrets) throw new AirlockError('too_many_secrets')
        const { version = 0, createdAt = now } = before ?? {}
        const next = { tenant, name, origin, keyId, sealed, version: version + 1, createdAt }
        const stored: StoredSecret = { ...next, updatedAt: now, updatedBy: actor }
        await putSecret(db, stored)
        return stored
      })
      return { value: toSecret(row, own.keyId), payload: { version: row.version } }
    })
  }

  /** It reduces: nothing is waited for but the row. */
  async remove(caller: Caller, name: string): Promise<void> {
    const { store, audit } = this.#world
    assertUnbound(caller)
    const row = await store.transaction((db) => takeSecret(db, { tenant: caller.principal.tenant, name }))
    if (!row) throw new AirlockError('secret_not_found')
    const payload = { name, origin: row.origin, version: row.version }
    audit.note({ ...deedOf(caller, 'secret.remove', payload), status: 'done' })
  }
}

function deedOf(caller: Caller, point: 'secret.put' | 'secret.remove', payload: Deed['payload']): Deed {
  const { tenant, actor } = caller.principal
  return { point, tenant, agent: null, sandbox: null, actor, payload: { requestId: caller.requestId, ...payload } }
}

function toSecret({ sealed: _sealed, keyId, createdAt, updatedAt, ...row }: StoredSecret, ownKeyId: string): Secret {
  return {
    ...row,
    usable: keyId === ownKeyId,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  }
}
