import { ApprovalAnswers } from '../approvals/approvals.ts'
import type { Context } from './context.ts'
import { WebhookRegistry } from '../webhooks/registry.ts'

/** What people are asked, and whom to tell. */
export interface Asks {
  readonly answers: ApprovalAnswers
  readonly webhooks: WebhookRegistry
}

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'approvalNews' | 'webhookPrivate'>

export function createAsks(world: World): Asks {
  return { answers: new ApprovalAnswers(world), webhooks: new WebhookRegistry(world) }
}
