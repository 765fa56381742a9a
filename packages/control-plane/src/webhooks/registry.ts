import {
  AirlockError,
  BOUNDS,
  type CreateWebhookBody,
  isAirlockError,
  type NewWebhook,
  type Webhook,
} from '@airlock/contract'
import { newId, randomText } from '@airlock/std'
import { findWebhook, insertWebhook, listWebhooks, type StoredWebhook, takeWebhook } from '../store/webhooks.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import { webhookAddress } from './address.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'webhookPrivate'>

const SECRET_CHARACTERS = 52

/** Whom a tenant wants to be told. Not yours is not found. */
export class WebhookRegistry {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** Where it is is looked at now, for who makes it to hear of it, and again at every delivery. */
  async create(caller: Caller, body: CreateWebhookBody): Promise<NewWebhook> {
    const { store, clock } = this.#world
    const { tenant, actor } = caller.principal
    const { url } = body
    const events = [...new Set(body.events)]
    const deed = webhookDeed(caller, 'webhook.create', { host: new URL(url).host, events })
    await recordRefusal(this.#world, deed, async () => {
      assertUnbound(caller)
      await this.#assertReachable(new URL(url))
    })
    const now = clock.now()
    const of = { id: newId('whk', now), tenant, url, events, secret: `whs_${randomText(SECRET_CHARACTERS)}` }
    const row: StoredWebhook = { ...of, createdAt: now, createdBy: actor, lastAt: null, lastError: null }
    return doRecorded(this.#world, { ...deed, payload: { ...deed.payload, webhook: row.id } }, async () => {
      await store.transaction(async (db) => {
        const others = (await listWebhooks(db, tenant)).filter(({ id }) => id !== row.id)
        if (others.length >= BOUNDS.webhooks) throw new AirlockError('too_many_webhooks')
        await insertWebhook(db, row)
      })
      return { value: { webhook: toWebhook(row), secret: row.secret } }
    })
  }

  async list(caller: Caller): Promise<readonly Webhook[]> {
    assertUnbound(caller)
    const rows = await this.#world.store.query((db) => listWebhooks(db, caller.principal.tenant))
    return rows.map(toWebhook)
  }

  async get(caller: Caller, id: string): Promise<Webhook> {
    assertUnbound(caller)
    const row = await this.#world.store.query((db) => findWebhook(db, { tenant: caller.principal.tenant, id }))
    if (!row) throw new AirlockError('webhook_not_found')
    return toWebhook(row)
  }

  /** It reduces: nothing is waited for but the row. */
  async remove(caller: Caller, id: string): Promise<void> {
    const { store, audit } = this.#world
    assertUnbound(caller)
    const row = await store.transaction((db) => takeWebhook(db, { tenant: caller.principal.tenant, id }))
    if (!row) throw new AirlockError('webhook_not_found')
    const { host } = new URL(row.url)
    audit.note({ ...webhookDeed(caller, 'webhook.remove', { webhook: id, host }), status: 'done' })
  }

  async #assertReachable(url: URL): Promise<void> {
    if (this.#world.webhookPrivate) return
    if (url.protocol !== 'https:')
      throw new AirlockError('invalid_request', 'url: must be https, unless webhook_private is set')
    await webhookAddress(url, false).catch((error: unknown) => {
      // A name that has no address yet may get one: where it leads is looked at again whenever it is told something.
      if (!isAirlockError(error) || error.code !== 'forbidden') return
      const hint = 'The operator may allow it with webhook_private.'
      throw new AirlockError('invalid_request', 'url: is not at a public address', { cause: error, hint })
    })
  }
}

function webhookDeed<P extends 'webhook.create' | 'webhook.remove'>(
  caller: Caller,
  point: P,
  payload: Deed['payload'],
): Deed & { readonly point: P } {
  const { tenant, actor } = caller.principal
  return { point, tenant, agent: null, sandbox: null, actor, payload: { requestId: caller.requestId, ...payload } }
}

function toWebhook(row: StoredWebhook): Webhook {
  const { secret: _secret, ...shown } = row
  return {
    ...shown,
    createdAt: new Date(row.createdAt).toISOString(),
    lastAt: row.lastAt === null ? null : new Date(row.lastAt).toISOString(),
  }
}
