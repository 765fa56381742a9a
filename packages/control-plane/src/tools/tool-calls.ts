import { createHash } from 'node:crypto'
import {
  AirlockError,
  BOUNDS,
  type CloseToolCall,
  isAirlockError,
  type ListToolsCall,
  type OpenedToolCall,
  type OpenToolCall,
  type Operation,
  type Question,
  toolDenied,
  toolName,
  type ToolInside,
  type ToolOrder,
} from '@airlock/contract'
import { inParallel, newId } from '@airlock/std'
import type { SandboxCaller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import type { Deed } from '../evidence/evidence.ts'
import { type Governed, saying } from '../policies/guardian.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import { findSecret } from '../store/secrets.ts'
import { countToolCall, findTool, listTools, type StoredTool } from '../store/tools.ts'
import { OutOfScope, type RenderedCall, renderCall } from './render-call.ts'

type World = Pick<
  Context,
  'store' | 'node' | 'clock' | 'audit' | 'guardian' | 'readiness' | 'doorNews' | 'reservations' | 'log'
>

interface Parts {
  /** The sandbox of a program whose token is good. Throws `token_refused`. */
  readonly admit: (call: Pick<ListToolsCall, 'sandbox' | 'token'>) => Promise<StoredSandbox>
}

/** How long a program waits for a person. */
const ASK_WAIT_MS = 30_000
/** The doors report the ends of a sandbox that ended within this time. */
const LAST_REPORTS_MS = 10_000
/** Calls that are judged again at once, and tools that are judged for a list. */
const JUDGED_AT_ONCE = 16
/** Of one node. */
const MAX_OPEN = 10_000

/** Where a call of the doors came from. */
export interface ToolOrigin {
  /** The connection of the doors: when it is gone, so is every call that was opened by it. */
  readonly line: object
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

interface OpenCall {
  readonly id: string
  readonly sandbox: string
  readonly line: object
  readonly deed: Governed
  readonly question: Question
  readonly openedAt: number
  /** A person let it pass: that rules still ask changes nothing. */
  readonly isApproved: boolean
  /** Rules deny it since it was opened. */
  isDenied: boolean
}

/**
 * Calls of tools by programs in sandboxes. Each is admitted, counted, decided on and recorded before the service hears of it, and
 * its whole request is signed for `keys`. Every call that was opened has exactly one end in the evidence, whichever process dies.
 */
export class ToolCalls {
  readonly #world: World
  readonly #parts: Parts
  readonly #open = new Map<string, OpenCall>()
  /** Counts changes of the rules. */
  #revision = 0

  constructor(world: World, parts: Parts) {
    this.#world = world
    this.#parts = parts
    world.doorNews.subscribe((change) => {
      if (change.what === 'policy') void this.#judgeAll()
      if (change.what === 'shut') this.#expectLast(change.sandboxes)
    })
  }

  /** Tools that the program may call, or may ask a person for. */
  async list(asked: ListToolsCall): Promise<readonly ToolInside[]> {
    const { readiness, store, guardian } = this.#world
    readiness.assert('serving')
    const row = await this.#admit(asked)
    const tools = await store.query((db) => listTools(db, row.tenant))
    const allowed = new Set<string>()
    await inParallel(tools, JUDGED_AT_ONCE, async ({ name }) => {
      const { decision } = await guardian.explain(questionOf(row, { kind: 'tool', tool: name }))
      if (decision.effect !== 'deny') allowed.add(name)
    })
    return tools
      .filter(({ name }) => allowed.has(name))
      .map(({ name, spec: { description, parameters } }) => ({ name, description, parameters }))
  }

  /** Throws `policy_denied` with one text for every denial: the evidence says why. */
  async open(asked: OpenToolCall, { line, signal }: ToolOrigin): Promise<OpenedToolCall> {
    const { readiness, store } = this.#world
    readiness.assert('serving')
    readiness.assert('granting')
    if (this.#open.size >= MAX_OPEN) throw new AirlockError('too_many_requests')
    const row = await this.#admit(asked)
    // Before anything else is decided: a denial costs as much as a call.
    const count = await store.transaction((db) => countToolCall(db, row.id))
    const asking = { row, asked, count, line, signal, caller: this.#callerOf(row, asked, signal) }
    try {
      return await this.#decide(asking)
    } catch (error) {
      throw isAirlockError(error) && error.code === 'policy_denied' ? toolDenied() : error
    }
  }

  /** Idempotent. A call of another sandbox, or that nobody opened, changes nothing. */
  close(end: CloseToolCall): void {
    const open = this.#open.get(end.call)
    if (open?.sandbox === end.sandbox) this.#end(open, end)
  }

  /** The connection of the doors broke: they have cut all of these, and cannot say how far each came. */
  lost(line: object): void {
    for (const open of this.#open.values()) if (open.line === line) this.#endUnknown(open)
  }

  async #admit(call: Pick<ListToolsCall, 'sandbox' | 'token'>): Promise<StoredSandbox> {
    const row = await this.#parts.admit(call)
    if (row.node !== this.#world.node.id) throw new AirlockError('sandbox_ended')
    if (!row.doors.includes('broker')) throw new AirlockError('forbidden', 'The sandbox has no broker door.')
    return row
  }

  /** Allowlist, scope, count; a person is asked last. */
  async #decide(asking: Asking): Promise<OpenedToolCall> {
    const { row, asked, count, caller } = asking
    const { guardian } = this.#world
    const operation = { kind: 'tool', tool: asked.tool, params: asked.params } as const
    const base = deedOf(asking, {})
    const tool = await this.#find(asking)
    if (!tool) throw this.#refuse(base, 'tool_not_found', 'There is no such tool.')
    const { method, origin, path } = tool.spec
    const known = deedOf(asking, { method, origin, path })
    await guardian.foresee(caller, known, [{ point: 'tool.call', operation }])
    const rendered = this.#render(tool, asked, known)
    if (count > BOUNDS.toolCalls) {
      this.#refuse(known, 'too_many_calls', `It was call ${count}.`)
      throw new AirlockError('too_many_calls')
    }
    const deed = { ...known, payload: { ...known.payload, request: digestOf(rendered) } }
    const revision = this.#revision
    const exact = { ...operation, request: `${method} ${origin}${rendered.target}` }
    const passed = await guardian.pass(boundTo(caller, tool, rendered), deed, exact)
    const question = questionOf(row, exact)
    return this.#begin({ asking, tool, rendered, passed, question, isStale: () => revision !== this.#revision })
  }

  /** A tool may have changed while a person thought: what was decided on is sent. */
  async #begin({ asking, tool, rendered, passed, question, isStale }: Beginning): Promise<OpenedToolCall> {
    const { row, line, signal } = asking
    const { clock, audit } = this.#world
    const id = newId('tcl', clock.now())
    const deed = saying(passed, { call: id })
    const isApproved = passed.decision.rules.some(({ policy }) => policy === 'approval')
    const made = { id, sandbox: row.id, line, deed, question, openedAt: clock.now() }
    const open: OpenCall = { ...made, isApproved, isDenied: false }
    this.#open.set(id, open)
    try {
      if (isStale()) await this.#judge(open)
      await audit.require({ ...deed, status: 'requested' })
      this.#assertOpen(open, signal)
      const order = await this.#order({ id, row, tool, rendered })
      return { call: id, order, body: rendered.body, timeoutMs: tool.spec.timeoutMs }
    } catch (error) {
      const { code, message } = isAirlockError(error) ? error : new AirlockError('internal')
      this.#end(open, { status: null, received: 0, error: open.isDenied ? 'policy_denied' : code, message })
      throw error
    }
  }

  async #find({ row, asked }: Asking): Promise<StoredTool | undefined> {
    if (!toolName.safeParse(asked.tool).success) return undefined
    return this.#world.store.query((db) => findTool(db, { tenant: row.tenant, name: asked.tool }))
  }

  #render({ spec }: StoredTool, { params }: OpenToolCall, deed: Deed): RenderedCall {
    try {
      return renderCall(spec, params)
    } catch (error) {
      if (error instanceof OutOfScope) throw this.#refuse(deed, 'out_of_scope', error.message)
      if (isAirlockError(error)) this.#refuse(deed, error.code, 'The parameters are not those of the tool.')
      throw error
    }
  }

  /** Read as late as can be: a value that was replaced meanwhile is not used. */
  async #order({ id, row, tool, rendered }: Ordering): Promise<string> {
    const { store, node, reservations, clock } = this.#world
    const { tenant, agent, id: sandbox } = row
    const { origin, method, headers, credential, maxAnswerBytes, timeoutMs } = tool.spec
    const name = credential?.secret
    const found = name === undefined ? undefined : await store.query((db) => findSecret(db, { tenant, name }))
    if (credential !== null && !found)
      throw new AirlockError('secret_unavailable', `There is no secret ${credential.secret}.`)
    const secret: ToolOrder['secret'] =
      credential === null || !found
        ? null
        : {
            name: found.name,
            sealed: found.sealed,
            origin: found.origin,
            header: credential.header,
            prefix: credential.prefix ?? (credential.header === 'authorization' ? 'Bearer ' : ''),
            basicUser: credential.basicUser ?? null,
          }
    const { target, bodySha256 } = rendered
    const who = { callId: id, node: node.id, tenant, agent, sandbox, tool: tool.name }
    const what = { origin, method, target, headers, bodySha256, secret, maxAnswerBytes, timeoutMs }
    return reservations.order({ ...who, ...what }, clock.now())
  }

  #refuse(deed: Deed, code: string, message: string): AirlockError {
    this.#world.audit.note({ ...deed, status: 'denied', error: { code, message } })
    return toolDenied()
  }

  #end(open: OpenCall, { status, received, error, message }: Omit<CloseToolCall, 'sandbox' | 'call'>): void {
    if (!this.#open.delete(open.id)) return
    const durationMs = this.#world.clock.now() - open.openedAt
    const record = { ...open.deed, payload: { ...open.deed.payload, httpStatus: status, received }, durationMs }
    if (error === null) return this.#world.audit.note({ ...record, status: 'done' })
    const fault = { code: error, message: message ?? 'It failed.' }
    this.#world.audit.note({ ...record, status: DENIALS.has(error) ? 'denied' : 'failed', error: fault })
  }

  #endUnknown(open: OpenCall): void {
    if (!this.#open.delete(open.id)) return
    const durationMs = this.#world.clock.now() - open.openedAt
    this.#world.audit.note({ ...open.deed, status: 'unknown', durationMs })
  }

  #expectLast(sandboxes: readonly string[] | null): void {
    const left = [...this.#open.values()].filter(({ sandbox }) => sandboxes?.includes(sandbox) ?? true)
    if (left.length === 0) return
    setTimeout(() => {
      for (const open of left) this.#endUnknown(open)
    }, LAST_REPORTS_MS).unref()
  }

  /** Fails closed: a call that cannot be judged is cut. */
  async #judgeAll(): Promise<void> {
    this.#revision += 1
    const cut: OpenCall[] = []
    await inParallel([...this.#open.values()], JUDGED_AT_ONCE, async (open) => {
      await this.#judge(open)
      if (open.isDenied) cut.push(open)
    })
    for (const [sandbox, calls] of Map.groupBy(cut, (open) => open.sandbox))
      this.#world.doorNews.publish({ what: 'cut', sandbox, connections: calls.map(({ id }) => id) })
  }

  async #judge(open: OpenCall): Promise<void> {
    const { guardian, log } = this.#world
    try {
      const { effect } = (await guardian.explain(open.question)).decision
      open.isDenied ||= effect === 'deny' || (effect === 'ask' && !open.isApproved)
    } catch (error) {
      log.warn('could not judge an open call of a tool again; cutting it', { call: open.id, error })
      open.isDenied = true
    }
  }

  #assertOpen(open: OpenCall, { aborted }: AbortSignal): void {
    // Nobody hears the answer, so nothing is sent.
    if (aborted) throw new AirlockError('not_ready', 'Nobody waits for the call any more.')
    if (open.isDenied) throw new AirlockError('policy_denied', 'The rules changed meanwhile.')
    if (!this.#open.has(open.id)) throw new AirlockError('not_ready')
  }

  /** The same call of the same sandbox joins one approval. */
  #callerOf(row: StoredSandbox, asked: OpenToolCall, signal: AbortSignal): SandboxCaller {
    const { tool, params, requestId } = asked
    return {
      principal: principalOf(row),
      requestId,
      asked: { route: 'tool.call', params: { sandbox: row.id }, query: null, body: { tool, params } },
      approvalWait: { until: this.#world.clock.now() + ASK_WAIT_MS, signal },
      assertGood: async () => void (await this.#admit(asked)),
    }
  }
}

/** An approval is for the request as it will be sent, with the credential that goes with it: another version of the tool asks anew. */
function boundTo(caller: SandboxCaller, { spec, version }: StoredTool, rendered: RenderedCall): SandboxCaller {
  const { asked } = caller
  if (!asked) return caller
  const { method, origin, headers, credential } = spec
  return {
    ...caller,
    asked: { ...asked, body: { asked: asked.body, version, method, origin, headers, credential, ...rendered } },
  }
}

/** Ends that say no. */
const DENIALS: ReadonlySet<string> = new Set(['policy_denied', 'secret_in_call'])

interface Asking extends ToolOrigin {
  readonly row: StoredSandbox
  readonly asked: OpenToolCall
  /** Calls of the sandbox so far, this one included. */
  readonly count: number
  readonly caller: SandboxCaller
}

interface Beginning {
  readonly asking: Asking
  readonly tool: StoredTool
  readonly rendered: RenderedCall
  readonly passed: Governed
  readonly question: Question
  readonly isStale: () => boolean
}

interface Ordering {
  readonly id: string
  readonly row: StoredSandbox
  readonly tool: StoredTool
  readonly rendered: RenderedCall
}

function principalOf({ id: sandbox, tenant, agent }: StoredSandbox): SandboxCaller['principal'] {
  return { actor: `sandbox:${sandbox}`, tenant, role: 'sandbox', agent, sandbox }
}

function questionOf(row: StoredSandbox, operation: Operation): Question {
  return { point: 'tool.call', ...principalOf(row), operation }
}

/** Evidence has the size and a digest of what was sent, never a parameter: it may hold what the inspection will find. */
function deedOf({ row, asked, count }: Asking, payload: Deed['payload']): Deed {
  const { tenant, agent, sandbox, actor } = principalOf(row)
  const { requestId, tool } = asked
  const named = toolName.safeParse(tool).data ?? null
  return { point: 'tool.call', tenant, agent, sandbox, actor, payload: { requestId, tool: named, count, ...payload } }
}

function digestOf({ target, body }: RenderedCall) {
  const sha256 = createHash('sha256')
    .update(`${target}\n${body ?? ''}`)
    .digest('hex')
  return { bytes: Buffer.byteLength(target) + Buffer.byteLength(body ?? ''), sha256 }
}
