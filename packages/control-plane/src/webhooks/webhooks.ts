import type { WebhookEvent } from '@airlock/contract'

/** Tells the webhooks of a tenant of what happened. */
export interface Webhooks {
  /** Never waits and never fails: it is queued, tried a few times, and given up with a record. `payload` has no secrets. */
  send(tenant: string, event: WebhookEvent, payload: Readonly<Record<string, unknown>>): void
  /** Cuts what is being sent, and sends nothing more. */
  stop(): Promise<void>
}
