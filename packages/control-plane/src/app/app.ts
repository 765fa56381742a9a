import type { LlmStatus, Model } from '@airlock/contract'
import type { EvidenceKeeper, EvidenceReader, EventReader } from '@airlock/audit'
import type { Artifacts } from '../artifacts/artifacts.ts'
import type { ApprovalAnswers } from '../approvals/approvals.ts'
import type { Commands } from '../commands/commands.ts'
import type { Connections } from '../doors/connections.ts'
import { Audit } from '../evidence/audit.ts'
import { type EventFeed, Events } from '../evidence/events.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Catalog } from '../runs/catalog.ts'
import type { Runs } from '../runs/runs.ts'
import type { Kills } from '../kills/killswitch.ts'
import { readLlmStatus } from '../models/llm-status.ts'
import { listModels } from '../models/list-models.ts'
import type { Readiness } from '../nodes/readiness.ts'
import { Backtests } from '../policies/backtest.ts'
import type { Creation } from '../sandboxes/create.ts'
import type { Files } from '../sandboxes/files.ts'
import type { WorktreeDesk } from '../sandboxes/worktrees.ts'
import type { LimitChanges } from '../sandboxes/limits.ts'
import { Sandboxes } from '../sandboxes/sandboxes.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Steps } from '../sessions/steps.ts'
import type { Templates } from '../templates/templates.ts'
import { Secrets } from '../tools/secrets.ts'
import { ToolRegistry } from '../tools/tool-registry.ts'
import { WebhookRegistry } from '../webhooks/registry.ts'
import type { Caller } from './caller.ts'
import type { Context } from './context.ts'
import type { Lifecycle } from './lifecycle-parts.ts'
import { createRegistry, type Registry } from './registry.ts'

/** Methods that answer events one by one: to a caller, however they are made. */
type Streams<T, K extends keyof T> = {
  readonly [N in K]: T[N] extends (...asked: infer A) => AsyncIterable<infer E>
    ? (...asked: A) => AsyncIterable<E>
    : never
}

/**
 * Everything that a caller can have done, by subject, without a word of HTTP: the one way in. Each method checks that the caller may
 * (not yours is not found), writes evidence, has its effect, and throws `AirlockError` or answers a noun.
 */
export interface App extends Registry {
  readonly creation: Pick<Creation, 'create' | 'getOrCreate'>
  readonly sandboxes: Pick<Sandboxes, 'get' | 'list' | 'extend' | 'pause' | 'resume' | 'terminate' | 'counts'>
  readonly connections: Pick<Connections, 'connect'>
  readonly limitChanges: Pick<LimitChanges, 'change'>
  readonly commands: Pick<Commands, 'run' | 'list' | 'get' | 'fullOutput' | 'signal' | 'writeStdin'> &
    Streams<Commands, 'events'>
  readonly files: Pick<Files, 'read' | 'write' | 'pack' | 'unpack' | 'operate'>
  readonly worktrees: Pick<WorktreeDesk, 'diff' | 'patch' | 'export'>
  readonly sessions: Pick<Sessions, 'create' | 'list' | 'get' | 'interrupt' | 'restart' | 'terminate'>
  readonly steps: Pick<Steps, 'run' | 'list' | 'get'> & Streams<Steps, 'events'>
  readonly jobs: Pick<Jobs, 'submit' | 'list' | 'get' | 'cancel'> & Streams<Jobs, 'events'>
  readonly artifacts: Pick<
    Artifacts,
    'collect' | 'upload' | 'list' | 'get' | 'download' | 'link' | 'downloadLinked' | 'remove'
  >
  readonly catalog: Pick<Catalog, 'list' | 'get' | 'put' | 'remove'>
  readonly runs: Pick<Runs, 'submit' | 'list' | 'get' | 'cancel' | 'log' | 'answer'> & Streams<Runs, 'events'>
  readonly templates: Pick<Templates, 'list' | 'get' | 'put' | 'import' | 'remove'> & Streams<Templates, 'build'>
  readonly backtests: Pick<Backtests, 'run'>
  readonly killswitch: Kills
  readonly approvals: ApprovalAnswers
  readonly webhooks: WebhookRegistry
  readonly secrets: Pick<Secrets, 'key' | 'list' | 'put' | 'remove'>
  readonly tools: Pick<ToolRegistry, 'list' | 'get' | 'put' | 'remove'>
  readonly audit: Pick<Audit, 'events' | 'export' | 'head' | 'chains' | 'quarantine'>
  readonly events: EventFeed
  readonly models: { list(): readonly Model[]; status(caller: Caller): Promise<LlmStatus> }
  readonly readiness: Pick<Readiness, 'assert' | 'state'>
}

/** `evidence`: the recorder, as its readers and keepers see it. */
export function createApp(
  context: Context,
  lifecycle: Lifecycle,
  evidence: EvidenceReader & EvidenceKeeper & EventReader,
): App {
  return {
    ...lifecycle,
    ...createRegistry(context, lifecycle),
    sandboxes: new Sandboxes(context, lifecycle),
    backtests: new Backtests({ ...context, evidence }),
    webhooks: new WebhookRegistry(context),
    secrets: new Secrets(context),
    tools: new ToolRegistry(context),
    audit: new Audit(context, evidence),
    events: new Events({ ...context, reader: evidence }),
    models: { list: () => listModels(context), status: async (caller) => readLlmStatus(context, caller) },
    readiness: context.readiness,
  }
}
