import { type GuestRuntime, INSIDE } from '@airlock/contract/guest'
import type { Sessions } from '../../session/sessions.ts'
import { AgentFault, isGone } from './agent-fault.ts'
import type { RegisterBody, StepBody } from './agent-request.ts'
import { KnownSteps } from './known-steps.ts'
import { SessionToken } from './session-token.ts'
import type { CollectedStep, StepCollector } from './step-collector.ts'

const DEFAULT_TIMEOUT_MS = 300_000
const MAX_OUTPUT_BYTES = 2 * 1024 * 1024

export interface StepAnswer {
  readonly stepId: string
  readonly status: 'completed' | 'failed'
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  readonly outputs: readonly unknown[]
  readonly error?: unknown
  readonly restarted: boolean
  readonly truncated: boolean
}

interface Registered {
  /** What the engine calls it. */
  readonly id: string
  readonly runtime: GuestRuntime
  readonly token: SessionToken
  readonly opened: Promise<unknown>
  readonly steps: KnownSteps<StepAnswer>
}

/** Sessions for whoever has their tokens. It decides who may do what; what a session is, the engine knows. */
export class SessionAgent {
  readonly #sessions: Sessions
  readonly #collector: StepCollector
  readonly #registered = new Map<string, Registered>()
  #made = 0
  #channels = 0

  constructor(sessions: Sessions, collector: StepCollector) {
    this.#sessions = sessions
    this.#collector = collector
    collector.acknowledge = (channel, offset) => sessions.acknowledge(channel, offset)
  }

  /** Whoever registers an id first owns it; after that its token is needed, and its runtime is fixed. */
  async register(
    body: RegisterBody,
    token: string,
  ): Promise<{ readonly sessionId: string; readonly status: 'registered' }> {
    if (body.token !== undefined && !new SessionToken(body.token).isOpenedBy(token))
      throw new AgentFault('invalid_request', 'the tokens of header and body differ')
    const known = this.#registered.get(body.sessionId)
    if (known) throwUnlessOwner(known, token)
    if (known && known.runtime !== body.runtime)
      throw new AgentFault('runtime_mismatch', `the session is ${known.runtime}, not ${body.runtime}`)
    await (known ?? this.#add(body, token)).opened
    return { sessionId: body.sessionId, status: 'registered' }
  }

  async step(body: StepBody, token: string): Promise<StepAnswer> {
    const session = this.#get(body.sessionId, token)
    if (body.runtime !== undefined && body.runtime !== session.runtime)
      throw new AgentFault('runtime_mismatch', `the session is ${session.runtime}, not ${body.runtime}`)
    await session.opened
    return await session.steps.once(body, () => this.#run(session, body))
  }

  async interrupt(
    sessionId: string,
    token: string,
  ): Promise<{ readonly sessionId: string; readonly status: 'interrupted' }> {
    await this.#sessions.interrupt(this.#get(sessionId, token).id)
    return { sessionId, status: 'interrupted' }
  }

  async restart(
    sessionId: string,
    token: string,
  ): Promise<{ readonly sessionId: string; readonly status: 'restarted' }> {
    await this.#sessions.restart(this.#get(sessionId, token).id)
    return { sessionId, status: 'restarted' }
  }

  /** Answers when no process of it is left. */
  async terminate(
    sessionId: string,
    token: string,
  ): Promise<{ readonly sessionId: string; readonly status: 'terminated' }> {
    await this.#sessions.close(this.#get(sessionId, token).id)
    this.#registered.delete(sessionId)
    return { sessionId, status: 'terminated' }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#registered.values()].map(({ id }) => this.#sessions.close(id)))
    this.#registered.clear()
  }

  #add({ sessionId, runtime, workspaceDir }: RegisterBody, token: string): Registered {
    const id = `http_${++this.#made}`
    const opened = this.#sessions.open({ id, runtime, cwd: workspaceDir ?? INSIDE.workspace, env: {} })
    const session: Registered = { id, runtime, token: new SessionToken(token), opened, steps: new KnownSteps() }
    this.#registered.set(sessionId, session)
    opened.catch(() => {
      if (this.#registered.get(sessionId) === session) this.#registered.delete(sessionId)
    })
    return session
  }

  #get(sessionId: string, token: string): Registered {
    const session = this.#registered.get(sessionId)
    if (!session) throw new AgentFault('session_not_found', 'there is no such session')
    throwUnlessOwner(session, token)
    return session
  }

  async #run(session: Registered, body: StepBody): Promise<StepAnswer> {
    const channel = ++this.#channels
    const collected = this.#collector.expect(channel)
    try {
      await this.#sessions.step({
        id: `http_step_${channel}`,
        channel,
        session: session.id,
        code: body.code,
        env: body.env ?? {},
        stdin: body.stdin ?? '',
        timeoutMs: body.timeoutMs ?? DEFAULT_TIMEOUT_MS,
        maxOutputBytes: MAX_OUTPUT_BYTES,
      })
      const said = await collected
      this.#sessions.forget(channel)
      return answer(body.stepId, said)
    } catch (error) {
      throw isGone(error) ? new AgentFault('session_not_found', 'the session was terminated') : error
    } finally {
      this.#collector.forget(channel)
    }
  }
}

function throwUnlessOwner(session: Registered, token: string): void {
  if (!session.token.isOpenedBy(token)) throw new AgentFault('unauthenticated', 'this is not the token of the session')
}

function answer(stepId: string, { stdout, stderr, rich, truncated, end }: CollectedStep): StepAnswer {
  const errors = rich.filter(isError)
  const outputs = rich.filter((line) => !isError(line))
  const error = errors.at(-1)?.error
  const restarted = end.restarted ?? false
  const status = end.exitCode === 0 ? 'completed' : 'failed'
  const common = { stepId, status, exitCode: end.exitCode, stdout, stderr, outputs, restarted, truncated } as const
  return error === undefined ? common : { ...common, error }
}

function isError(line: unknown): line is { readonly kind: 'error'; readonly error: unknown } {
  return typeof line === 'object' && line !== null && 'kind' in line && line.kind === 'error'
}
