import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { id, time } from './scalars.ts'

export const webhookId = z.string().regex(/^whk_[0-9a-hjkmnp-tv-z]{26}$/, 'is not the id of a webhook')

/** What a webhook may be told of. */
const WEBHOOK_EVENTS = ['approval.pending', 'approval.answered', 'kill', 'alert'] as const
export const webhookEvent = z.enum(WEBHOOK_EVENTS)
export type WebhookEvent = z.infer<typeof webhookEvent>

export const createWebhookBody = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(BOUNDS.webhookUrl)
    .refine((text) => !/^https?:\/\/[^/?#]*@/.test(text), 'must not hold a user or a password')
    .refine((text) => !URL.canParse(text) || new URL(text).port !== '0', 'must not name port 0'),
  events: z.array(webhookEvent).min(1).max(WEBHOOK_EVENTS.length),
})
export type CreateWebhookBody = z.infer<typeof createWebhookBody>

/** A webhook as everybody may see it: its secret is shown once, when it is made. */
export const webhook = z.strictObject({
  id: webhookId,
  tenant: id,
  url: z.string(),
  events: z.array(webhookEvent),
  createdAt: time,
  createdBy: z.string(),
  /** When it was last told something, or given up on. */
  lastAt: time.nullable(),
  /** Why the last delivery failed; null when it was taken. */
  lastError: z.string().nullable(),
})
export type Webhook = z.infer<typeof webhook>

/** The only answer that ever holds the secret. */
export const newWebhook = z.strictObject({ webhook, secret: z.string() })
export type NewWebhook = z.infer<typeof newWebhook>
