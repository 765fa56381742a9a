import { type Sandbox, type SandboxState, SANDBOX_STATES } from '@airlock/contract'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { deedOf, doRecorded } from '../evidence/evidence.ts'
import { countByState, listSandboxes, LIVING_STATES } from '../store/sandboxes.ts'
import type { Activity } from './activity.ts'
import { isEnded } from './lifecycle.ts'
import { toSandbox } from './nouns.ts'
import { assertHere, mayUseAgent, ownedSandbox, readableSandbox, usableSandbox } from './owned-sandbox.ts'
import type { Pauses } from './pauses.ts'
import { resumeSandbox } from './resume.ts'
import type { Termination } from './terminate.ts'

export interface ListSandboxes {
  readonly state?: SandboxState | 'all' | undefined
  readonly agent?: string | undefined
  readonly name?: string | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly limit: number
  readonly cursor?: string | undefined
}

interface SandboxParts {
  readonly activity: Activity
  readonly pauses: Pick<Pauses, 'pause'>
  readonly termination: Pick<Termination, 'terminate'>
}

/** Sandboxes that are there: read, kept, stopped where they stand, and ended. */
export class Sandboxes {
  readonly #context: Context
  readonly #parts: SandboxParts

  constructor(context: Context, parts: SandboxParts) {
    this.#context = context
    this.#parts = parts
  }

  async get(caller: Caller, id: string): Promise<Sandbox> {
    return toSandbox(this.#parts.activity.current(await ownedSandbox(this.#context.store, caller, id)))
  }

  /** Newest first, of the agents that the caller may use. */
  async list(caller: Caller, asked: ListSandboxes): Promise<Page<Sandbox>> {
    const { principal } = caller
    if (asked.agent !== undefined && !mayUseAgent(principal, asked.agent)) return { items: [], nextCursor: null }
    const rows = await this.#context.store.query((db) =>
      listSandboxes(db, {
        tenant: principal.tenant,
        agents: asked.agent === undefined ? principal.agents : [asked.agent],
        states: statesOf(asked.state),
        name: asked.name,
        labels: asked.labels,
        before: asked.cursor,
        limit: asked.limit + 1,
      }),
    )
    return toPage(rows, asked.limit, (row) => toSandbox(this.#parts.activity.current(row)))
  }

  /** Lets a sandbox live longer from now on; never shorter, and never past the end of its permit. */
  async extend(caller: Caller, id: string, asked: { readonly ttlMs?: number | undefined }): Promise<Sandbox> {
    const row = await usableSandbox(this.#context, caller, id)
    const ttlMs = asked.ttlMs ?? row.ttlMs
    const wanted = deedOf(caller, row, { point: 'sandbox.extend', payload: { ttlMs } })
    const deed = await this.#context.guardian.pass(caller, wanted)
    return doRecorded(this.#context, deed, async () => {
      const sandbox = toSandbox(await this.#parts.activity.extend(row, ttlMs))
      return { value: sandbox, payload: { expiresAt: sandbox.expiresAt } }
    })
  }

  async pause(caller: Caller, id: string): Promise<Sandbox> {
    return toSandbox(await this.#parts.pauses.pause(caller, id))
  }

  async resume(caller: Caller, id: string): Promise<Sandbox> {
    const sandbox = await readableSandbox(this.#context, caller, id)
    return toSandbox(await resumeSandbox({ ...this.#context, ...this.#parts }, caller, { sandbox, why: 'request' }))
  }

  async terminate(caller: Caller, id: string, options: { readonly force: boolean }): Promise<Sandbox> {
    const row = await ownedSandbox(this.#context.store, caller, id)
    if (isEnded(row.state)) return toSandbox(row)
    await assertHere(this.#context, row)
    const { principal, requestId } = caller
    const end = { reason: 'terminated', actor: principal.actor, requestId, force: options.force } as const
    return toSandbox(await this.#parts.termination.terminate(row.id, end))
  }

  /** By state, of this node: whoever adds up all nodes counts each sandbox once. */
  async counts(): Promise<Readonly<Record<SandboxState, number>>> {
    const { store, node } = this.#context
    const found = await store.query((db) => countByState(db, node.id))
    const count = (state: SandboxState) => found.get(state) ?? 0
    return {
      creating: count('creating'),
      active: count('active'),
      paused: count('paused'),
      stopping: count('stopping'),
      stopped: count('stopped'),
      error: count('error'),
    }
  }
}

function statesOf(asked: ListSandboxes['state']): readonly SandboxState[] {
  if (asked === 'all') return SANDBOX_STATES
  return asked === undefined ? LIVING_STATES : [asked]
}
