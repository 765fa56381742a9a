import {
  AirlockError,
  type ApiKey,
  BOUNDS,
  type CreateKeyBody,
  type NewApiKey,
  type Point,
  type RotateKeyBody,
} from '@airlock/contract'
import { mintApiKey } from '../identity/api-keys.ts'
import {
  countGoodApiKeys,
  expireApiKey,
  findApiKey,
  insertApiKey,
  pageApiKeys,
  revokeApiKey,
  type StoredApiKey,
} from '../store/api-keys.ts'
import type { Queries } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { assertUnbound } from './overseer.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import { ownedTenant } from './tenants.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'keyUses' | 'guardKeys' | 'guardian'>

interface ListKeys {
  readonly tenant?: string | undefined
  readonly all: boolean
  readonly limit: number
  readonly cursor?: string | undefined
}

/**
 * API keys. A key is made by an admin of its tenant or by the platform, and never for more than its maker has: no other
 * tenant, and nothing of the platform, without being of the platform.
 */
export class Keys {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async create(caller: Caller, body: CreateKeyBody): Promise<NewApiKey> {
    const { store, clock, guardian } = this.#world
    const tenant = body.tenant ?? caller.principal.tenant
    const { name, role, platform, agents = null } = body
    const person = body.person ?? (await this.#personOf(caller))
    const asked = { name, role, platform, agents, person, expiresInMs: body.expiresInMs ?? null }
    const refused = keyDeed(caller, { point: 'key.create', tenant: caller.principal.tenant }, { tenant, ...asked })
    await recordRefusal(this.#world, refused, async () => {
      assertUnbound(caller)
      await ownedTenant(store, caller.principal, tenant)
      assertGrantable(caller, body)
    })
    const now = clock.now()
    const expiresAt = body.expiresInMs === undefined ? null : now + body.expiresInMs
    const of = { tenant, role, agents, platform, name, person, expiresAt, purpose: null, replaces: null }
    const { text, row } = mintApiKey({ ...of, createdAt: now, createdBy: caller.principal.actor })
    const wanted = keyDeed(caller, { point: 'key.create', tenant }, { key: row.id, ...asked })
    const deed = await guardian.pass(caller, wanted)
    return doRecorded(this.#world, deed, async () => {
      await store.transaction(async (db) => {
        await assertRoom(db, tenant, now)
        await insertApiKey(db, row)
      })
      return { value: { key: this.#show(row), secret: text } }
    })
  }

  /** Newest first. */
  async list(caller: Caller, asked: ListKeys): Promise<Page<ApiKey>> {
    const { store, clock } = this.#world
    assertUnbound(caller)
    const tenant = asked.tenant ?? caller.principal.tenant
    await ownedTenant(store, caller.principal, tenant)
    const goodAt = asked.all ? undefined : clock.now()
    const filter = { tenant, goodAt, before: asked.cursor, limit: asked.limit + 1 }
    const rows = await store.query((db) => pageApiKeys(db, filter))
    return toPage(rows, asked.limit, (row) => this.#show(row))
  }

  async get(caller: Caller, id: string): Promise<ApiKey> {
    return this.#show(await this.#owned(caller, id))
  }

  /** The new key is what the old one is. The old one ends after the overlap, or at its own end if that is earlier. */
  async rotate(caller: Caller, id: string, body: RotateKeyBody): Promise<NewApiKey> {
    const { store, clock, guardian } = this.#world
    const now = clock.now()
    const refused = keyDeed(caller, { point: 'key.rotate', tenant: caller.principal.tenant }, { key: id })
    const old = await recordRefusal(this.#world, refused, async () => this.#changeable(caller, id))
    const { tenant, role, agents, platform, name, person } = old
    const of = { tenant, role, agents, platform, name, person, purpose: null, replaces: id, createdAt: now }
    const expiresAt = body.expiresInMs === undefined ? old.expiresAt : now + body.expiresInMs
    const { text, row } = mintApiKey({ ...of, expiresAt, createdBy: caller.principal.actor })
    const payload = { key: row.id, replaces: id, overlapMs: body.overlapMs, role, platform }
    const deed = await guardian.pass(caller, keyDeed(caller, { point: 'key.rotate', tenant }, payload))
    return doRecorded(this.#world, deed, async () => {
      await store.transaction(async (db) => {
        assertGood(await findApiKey(db, id), now)
        await assertRoom(db, tenant, now)
        await insertApiKey(db, row)
        await expireApiKey(db, id, now + body.overlapMs)
      })
      return { value: { key: this.#show(row), secret: text } }
    })
  }

  /** It reduces: nothing is waited for but the row, and every request reads the row. */
  async revoke(caller: Caller, id: string): Promise<ApiKey> {
    const { store, clock, audit, guardKeys } = this.#world
    const refused = keyDeed(caller, { point: 'key.revoke', tenant: caller.principal.tenant }, { key: id })
    const row = await recordRefusal(this.#world, refused, async () => this.#manageable(caller, id))
    if (row.revokedAt !== null) return this.#show(row)
    const revokedAt = clock.now()
    await store.query((db) => revokeApiKey(db, id, revokedAt))
    guardKeys.forget(id)
    const { tenant, name, role } = row
    audit.note({ ...keyDeed(caller, { point: 'key.revoke', tenant }, { key: id, name, role }), status: 'done' })
    return this.#show({ ...row, revokedAt })
  }

  /** A key that is made without a person is in the hands of the person who made it. */
  async #personOf({ principal: { actor } }: Caller): Promise<string | null> {
    if (!actor.startsWith('key:')) return null
    const own = await this.#world.store.query((db) => findApiKey(db, actor.slice('key:'.length)))
    return own?.person ?? null
  }

  /** Not yours is not found. */
  async #owned(caller: Caller, id: string): Promise<StoredApiKey> {
    assertUnbound(caller)
    const row = await this.#world.store.query((db) => findApiKey(db, id))
    const { tenant, platform } = caller.principal
    if (!row || (row.tenant !== tenant && !platform)) throw new AirlockError('key_not_found')
    return row
  }

  /** Whoever is not of the platform gets no hold of its keys by being an admin of the same tenant. */
  async #manageable(caller: Caller, id: string): Promise<StoredApiKey> {
    const row = await this.#owned(caller, id)
    if (row.platform && !caller.principal.platform)
      throw new AirlockError('forbidden', 'Only a key of the platform changes a key of the platform.')
    return row
  }

  async #changeable(caller: Caller, id: string): Promise<StoredApiKey> {
    return assertGood(await this.#manageable(caller, id), this.#world.clock.now())
  }

  #show(row: StoredApiKey): ApiKey {
    const { hash: _hash, purpose: _purpose, ...shown } = row
    const used = Math.max(row.lastUsedAt ?? 0, this.#world.keyUses.get(row.id) ?? 0)
    return {
      ...shown,
      createdAt: toTime(row.createdAt),
      expiresAt: row.expiresAt === null ? null : toTime(row.expiresAt),
      revokedAt: row.revokedAt === null ? null : toTime(row.revokedAt),
      lastUsedAt: used === 0 ? null : toTime(used),
    }
  }
}

function assertGrantable(caller: Caller, body: CreateKeyBody): void {
  if (body.platform && !caller.principal.platform)
    throw new AirlockError('forbidden', 'Only a key of the platform makes a key of the platform.')
  if (body.agents !== undefined && (body.role === 'admin' || body.platform))
    throw new AirlockError('invalid_request', 'agents: a key that is bound to agents is neither admin nor platform')
}

function assertGood(row: StoredApiKey | undefined, now: number): StoredApiKey {
  if (!row) throw new AirlockError('key_not_found')
  if (row.revokedAt !== null || (row.expiresAt !== null && row.expiresAt <= now)) throw new AirlockError('key_ended')
  return row
}

async function assertRoom(db: Queries, tenant: string, now: number): Promise<void> {
  if ((await countGoodApiKeys(db, tenant, now)) >= BOUNDS.keys) throw new AirlockError('too_many_keys')
}

/** In the chain of the key's own tenant: its auditors see who made it, be it the platform. */
function keyDeed(
  caller: Caller,
  of: { readonly point: Point; readonly tenant: string },
  payload: Deed['payload'],
): Deed {
  const { actor } = caller.principal
  return { ...of, agent: null, sandbox: null, actor, payload: { requestId: caller.requestId, ...payload } }
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
