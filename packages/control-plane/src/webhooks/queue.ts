import type { AuditSink } from '@airlock/audit'
import type { WebhookEvent } from '@airlock/contract'
import { type Clock, deadline, type Log, newId, sleep } from '@airlock/std'
import type { Store } from '../store/engine/store.ts'
import { findWebhook, listWebhooks, setDelivered, type StoredWebhook } from '../store/webhooks.ts'
import { describeError } from '../evidence/evidence.ts'
import { postWebhook } from './post.ts'
import type { Webhooks } from './webhooks.ts'

const TRY_MS = 10_000
const PAUSES_MS = [1000, 5000, 25_000]
/** Deliveries that wait for one receiver, and for all of them. */
const QUEUED = 100
const QUEUED_IN_ALL = 1000
/** Events whose receivers are being looked up. */
const LOOKED_UP = 1000

interface World {
  readonly store: Store
  readonly audit: AuditSink
  readonly clock: Clock
  readonly log: Log
  readonly allowsPrivate: boolean
  /** What is waited before each try after the first. */
  readonly pausesMs?: readonly number[]
}

interface Letter {
  readonly id: string
  readonly event: WebhookEvent
  readonly body: string
}

interface Line {
  readonly letters: Letter[]
}

/**
 * Deliveries, in order for each receiver, in memory: a receiver that is slow holds up nobody else, and what is queued when the server
 * stops is not sent. A delivery that failed for good is a record, and shows at its webhook.
 */
export class WebhookQueue implements Webhooks {
  readonly #world: World
  readonly #lines = new Map<string, Line>()
  readonly #stop = new AbortController()
  readonly #underWay = new Set<Promise<void>>()
  #queued = 0
  #lookups = 0

  constructor(world: World) {
    this.#world = world
  }

  send(tenant: string, event: WebhookEvent, payload: Readonly<Record<string, unknown>>): void {
    if (this.#stop.signal.aborted) return
    if (this.#lookups >= LOOKED_UP) return this.#world.log.warn('an event is not sent: too many at once', { event })
    this.#lookups++
    this.#track(this.#spread(tenant, event, payload).finally(() => this.#lookups--))
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.allSettled(this.#underWay)
  }

  async #spread(tenant: string, event: WebhookEvent, payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { store, clock } = this.#world
    const webhooks = await store.query((db) => listWebhooks(db, tenant))
    const id = newId('evt', clock.now())
    const at = new Date(clock.now()).toISOString()
    const body = JSON.stringify({ id, event, tenant, at, data: payload })
    for (const webhook of webhooks) if (webhook.events.includes(event)) this.#add(webhook, { id, event, body })
  }

  #add(webhook: StoredWebhook, letter: Letter): void {
    const line = this.#lines.get(webhook.id)
    if (this.#queued >= QUEUED_IN_ALL || (line && line.letters.length >= QUEUED))
      return this.#track(this.#failed(webhook, letter, { code: 'timeout', message: 'Too many deliveries wait.' }))
    this.#queued++
    if (line) return void line.letters.push(letter)
    const fresh = { letters: [letter] }
    this.#lines.set(webhook.id, fresh)
    this.#track(this.#drain(webhook, fresh))
  }

  async #drain(webhook: StoredWebhook, line: Line): Promise<void> {
    const { store } = this.#world
    try {
      for (let letter = line.letters[0]; letter; letter = line.letters[0]) {
        const now = await store.query((db) => findWebhook(db, webhook))
        if (now && !this.#stop.signal.aborted) await this.#deliver(now, letter)
        line.letters.shift()
        this.#queued--
      }
    } finally {
      this.#queued -= line.letters.length
      this.#lines.delete(webhook.id)
    }
  }

  async #deliver(webhook: StoredWebhook, letter: Letter): Promise<void> {
    const { store, clock, pausesMs = PAUSES_MS } = this.#world
    let error: ReturnType<typeof describeError> | undefined
    for (const pauseMs of [0, ...pausesMs]) {
      error = await this.#attempt(webhook, letter, pauseMs)
      if (!error || this.#stop.signal.aborted) break
    }
    if (error) return this.#failed(webhook, letter, error)
    await store.query((db) => setDelivered(db, webhook.id, { at: clock.now(), error: null }))
  }

  /** Answers what went wrong. */
  async #attempt(webhook: StoredWebhook, letter: Letter, pauseMs: number) {
    const { clock, allowsPrivate } = this.#world
    const stop = this.#stop.signal
    try {
      await sleep(pauseMs, stop)
      const at = Math.floor(clock.now() / 1000)
      const delivery = { url: webhook.url, secret: webhook.secret, at, body: letter.body }
      await postWebhook(delivery, { allowsPrivate, signal: deadline(TRY_MS, stop) })
      return undefined
    } catch (error) {
      return stop.aborted ? { code: 'not_ready', message: 'The server stopped.' } : describeError(error)
    }
  }

  async #failed(webhook: StoredWebhook, letter: Letter, error: ReturnType<typeof describeError>): Promise<void> {
    const { store, clock, audit } = this.#world
    const { tenant } = webhook
    const payload = { webhook: webhook.id, event: letter.event, delivery: letter.id }
    audit.note({ tenant, actor: 'system', point: 'webhook.deliver', status: 'failed', error, payload })
    await store.query((db) => setDelivered(db, webhook.id, { at: clock.now(), error: error.message.slice(0, 200) }))
  }

  /** What fails here is the store: an event is not worth more than a line in the log. */
  #track(work: Promise<void>): void {
    const caught = work.catch((error: unknown) => this.#world.log.warn('a webhook could not be told', { error }))
    this.#underWay.add(caught)
    void caught.finally(() => this.#underWay.delete(caught))
  }
}
