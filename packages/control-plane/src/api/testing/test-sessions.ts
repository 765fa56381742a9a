import {
  AirlockError,
  type CreateSessionBody,
  type RunStepBody,
  type Session,
  type Step,
  type StepEvent,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import type { Page } from '../../app/caller.ts'
import type { ListSessions } from '../../sessions/sessions.ts'
import type { StepRef } from '../../sessions/steps.ts'
import { TestStep } from './test-step.ts'

/** For tests only: the sessions of `TestCore`, kept in memory. */
export class TestSessions {
  readonly all = new Map<string, Session>()
  readonly #steps = new Map<string, TestStep>()

  create(body: CreateSessionBody, sandbox: { readonly id: string; readonly owned: boolean }): Session {
    const now = new Date()
    const session: Session = {
      id: newId('ses'),
      tenant: 'default',
      agent: 'default',
      sandbox: sandbox.id,
      ownsSandbox: sandbox.owned,
      runtime: body.runtime,
      runtimeVersion: `${body.runtime} of a test`,
      state: 'active',
      labels: body.labels,
      ttlMs: body.ttlMs,
      restarts: 0,
      createdAt: now.toISOString(),
      lastActiveAt: now.toISOString(),
      expiresAt: new Date(now.getTime() + body.ttlMs).toISOString(),
      endedAt: null,
      endReason: null,
    }
    this.all.set(session.id, session)
    return session
  }

  list(query: ListSessions): Page<Session> {
    const state = query.state ?? 'active'
    const items = [...this.all.values()].filter(
      (one) =>
        (state === 'all' || one.state === state) && (query.sandbox === undefined || one.sandbox === query.sandbox),
    )
    return { items: items.toReversed().slice(0, query.limit), nextCursor: null }
  }

  get(id: string): Session {
    const found = this.all.get(id)
    if (!found) throw new AirlockError('session_not_found')
    return found
  }

  interrupt(id: string, only?: string): void {
    this.#active(id)
    for (const step of this.#running(id)) if (only === undefined || step.state.id === only) step.interrupt()
  }

  restart(id: string): Session {
    const session = this.#active(id)
    for (const step of this.#running(id)) step.kill()
    return this.#change({ ...session, restarts: session.restarts + 1 })
  }

  terminate(id: string): Session {
    const session = this.get(id)
    if (session.state !== 'active') return session
    for (const step of this.#running(id)) step.kill()
    return this.#change({ ...session, state: 'terminated', endReason: 'terminated', endedAt: new Date().toISOString() })
  }

  run(id: string, root: string, body: RunStepBody): Step {
    const session = this.#active(id)
    const known = [...this.#steps.values()].find(
      (step) => step.state.session === id && step.state.stepId === body.stepId,
    )
    if (known && known.code !== body.code) throw new AirlockError('step_mismatch')
    if (known) return known.state
    const step = new TestStep(session, root, body)
    this.#steps.set(step.state.id, step)
    return step.state
  }

  steps(id: string): Page<Step> {
    this.get(id)
    const items = [...this.#steps.values()].map((one) => one.state).filter((one) => one.session === id)
    return { items: items.toReversed(), nextCursor: null }
  }

  step(of: StepRef): TestStep {
    const found = this.#steps.get(of.step)
    if (!found || found.state.session !== of.session) throw new AirlockError('step_not_found')
    return found
  }

  events(of: StepRef, options: Parameters<TestStep['events']>[0]): AsyncGenerator<StepEvent> {
    return this.step(of).events(options)
  }

  dispose(): void {
    for (const id of this.all.keys()) this.terminate(id)
  }

  #active(id: string): Session {
    const session = this.get(id)
    if (session.state !== 'active') throw new AirlockError('session_expired')
    return session
  }

  #running(id: string): readonly TestStep[] {
    return [...this.#steps.values()].filter(({ state }) => state.session === id && state.status === 'running')
  }

  #change(session: Session): Session {
    this.all.set(session.id, session)
    return session
  }
}
