import { canonical } from '@airlock/audit'
import type { Question } from '@airlock/contract'
import { createHash } from 'node:crypto'
import type { AnyCaller, AskedRequest } from '../app/caller.ts'
import type { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'

/** What a request is found by again. */
export interface ApprovalKey {
  readonly hash: string
  /** Of the same request, whichever sandbox and session of the agent it is for. */
  readonly wideHash: string
  /** By which the sandbox is known, where the hash does not name it. */
  readonly history: string | undefined
}

/**
 * SHA-256 over everything that matters of a request: who asks, for what point, agent and sandbox, the operation as it will run, and
 * the request as it was sent, with the values of variables and the bytes that came along. One byte more is another request.
 * An ephemeral sandbox is known by its history, so the same run in a new one is the same request.
 */
export async function approvalKey(
  { asked }: AnyCaller,
  question: Question,
  ephemeral: Pick<EphemeralSandboxes, 'historyOf'>,
): Promise<ApprovalKey> {
  const { operation, ...who } = question
  const digest = (await asked?.digest?.()) ?? null
  const history = ephemeral.historyOf(question.sandbox, question.point)
  const sent = asked ? { ...requestOf(asked), digest } : null
  // Of what a rule sees as its record alone, the request says it better: a record may be cut, and names the request.
  const does = operation.kind === 'other' && sent ? { kind: operation.kind } : operation
  const of = { version: 1, ...who, does, sent }
  const placeless = { ...of, sandbox: null, sent: sent && anywhere(sent) }
  return {
    hash: sha256(canonical(history === undefined ? of : { ...placeless, history })),
    wideHash: sha256(canonical({ ...placeless, ...anyone(question) })),
    history,
  }
}

/** Each sandbox asks as itself: for all sandboxes of an agent it does not matter which one asks. */
function anyone({ role, actor }: Question): Pick<Question, 'actor'> {
  return { actor: role === 'sandbox' ? role : actor }
}

/** The caller's own id of a step is new with every try, and says nothing about what it does. */
function requestOf({ route, params, query, body }: AskedRequest) {
  if (!isRecord(body) || !('stepId' in body)) return { route, params, query, body }
  const { stepId: _stepId, ...rest } = body
  return { route, params, query, body: rest }
}

const PLACE = /^(?:sbx|ses)_[0-9a-z]{26}$/

/** Without the names of sandboxes and sessions, where a request has them: in its path, or as a field of its body. */
function anywhere<T extends { readonly params: unknown; readonly body: unknown }>(sent: T): T {
  return { ...sent, params: unplaced(sent.params), body: unplaced(sent.body) }
}

function unplaced(fields: unknown): unknown {
  if (!isRecord(fields)) return fields
  const placed = (value: unknown) => (typeof value === 'string' && PLACE.test(value) ? null : value)
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, placed(value)]))
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
