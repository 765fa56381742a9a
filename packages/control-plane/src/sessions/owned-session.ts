import { AirlockError, type ErrorCode, isAirlockError } from '@airlock/contract'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import { findSession, type StoredSession } from '../store/sessions.ts'
import type { Store } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { assertHere, awake, mayUseAgent } from '../sandboxes/owned-sandbox.ts'
import type { ResumeContext } from '../sandboxes/resume.ts'

/** A session and where it is. */
export interface Place {
  readonly session: StoredSession
  readonly sandbox: StoredSandbox
}

/** The tenant wall (G10): the only way from a caller to a session. Not yours is not found. */
export async function ownedSession(store: Store, caller: Caller, id: string): Promise<Place> {
  const { principal } = caller
  const place = await store.query(async (db) => {
    const session = await findSession(db, id)
    // One that is being opened is nobody's yet.
    if (!session || session.tenant !== principal.tenant || session.runtimeVersion === '') return undefined
    const sandbox = await findSandbox(db, session.sandbox)
    return sandbox && { session, sandbox }
  })
  if (!place || !mayUseAgent(principal, place.session.agent)) throw new AirlockError('session_not_found')
  return place
}

type Here = Pick<Context, 'store' | 'node'>

/** The same, for what was said in it: it must not have ended, and be here; it may be paused. */
export async function readableSession(here: Here, caller: Caller, id: string): Promise<Place> {
  const place = await ownedSession(here.store, caller, id)
  if (place.session.state !== 'active') throw new AirlockError('session_expired')
  await assertHere(here, place.sandbox)
  const { state } = place.sandbox
  if (state !== 'active' && state !== 'paused') throw new AirlockError('session_expired')
  return place
}

/** The same, for what has an effect inside. One whose sandbox was paused for being idle wakes up. */
export async function usableSession(here: Here & ResumeContext, caller: Caller, id: string): Promise<Place> {
  const { session, sandbox } = await readableSession(here, caller, id)
  return { session, sandbox: await awake(here, caller, sandbox) }
}

/** Asks an interpreter. What the data plane says of the sandbox becomes what it means for the session. */
export async function inSession<T>(store: Store, id: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    const code = isAirlockError(error) ? MEANINGS[error.code] : undefined
    if (code === undefined) throw error
    const row = await store.query((db) => findSession(db, id)).catch(() => undefined)
    throw new AirlockError(row && row.state !== 'active' ? 'session_expired' : code, undefined, { cause: error })
  }
}

const MEANINGS: Partial<Record<ErrorCode, ErrorCode>> = {
  data_plane_unavailable: 'runtime_unreachable',
  guest_lost: 'runtime_unreachable',
  timeout: 'runtime_unreachable',
  sandbox_not_found: 'runtime_unreachable',
  sandbox_not_active: 'runtime_unreachable',
  // The guest lives and has no such interpreter.
  session_not_found: 'runtime_crashed',
}
