import type { AirlockClient, AuditEvent, Identity } from '@airlock/sdk/browser'
import { AirlockError } from '@airlock/sdk/browser'
import { createContext } from 'preact'
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks'
import type { Live } from './live.ts'
import { type May, rightsOf } from './may.ts'
import type { Server } from './server.ts'

/** Somebody who is signed in. */
export interface Session {
  readonly server: Server
  readonly live: Live
  readonly who: Identity
  /** The cookie is no good any more. */
  readonly onSignedOut: () => void
}

export const SessionContext = createContext<Session | null>(null)

export function useSession(): Session & { readonly client: AirlockClient; readonly may: May } {
  const session = useContext(SessionContext)
  if (!session) throw new TypeError('nobody is signed in')
  return { ...session, client: session.server.client, may: rightsOf(session.who) }
}

export interface Loaded<T> {
  readonly value: T | undefined
  readonly error: AirlockError | undefined
  readonly reload: () => void
}

interface LoadOptions {
  /** Loads anew when one of these changes. */
  readonly by: readonly unknown[]
  /** Loads anew on events that it accepts. */
  readonly on?: ((event: AuditEvent) => boolean) | undefined
  readonly everyMs?: number
}

const SETTLE_MS = 250

/** What the server says, kept on the page while it is asked again. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, { by, on, everyMs }: LoadOptions): Loaded<T> {
  const { live, onSignedOut } = useSession()
  const [state, setState] = useState<{ readonly value?: T; readonly error?: AirlockError }>({})
  const [round, setRound] = useState(0)
  const reload = useCallback(() => setRound((before) => before + 1), [])
  useEffect(() => {
    const gone = new AbortController()
    load(gone.signal).then(
      (value) => setState({ value }),
      (error: unknown) => {
        if (gone.signal.aborted) return
        const known = toError(error)
        if (known.code === 'unauthenticated') onSignedOut()
        else setState((before) => ({ ...before, error: known }))
      },
    )
    return () => gone.abort()
  }, [...by, round])
  useEvents(live, on, reload)
  useEffect(() => {
    if (everyMs === undefined) return undefined
    const timer = setInterval(() => {
      if (!document.hidden) reload()
    }, everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return { value: state.value, error: state.error, reload }
}

/** Many events at once are one reload. */
function useEvents(live: Live, on: LoadOptions['on'], reload: () => void): void {
  const accepts = useRef(on)
  accepts.current = on
  useEffect(() => {
    let timer: number | undefined
    const stop = live.onEvent((event) => {
      if (accepts.current?.(event) !== true) return
      timer ??= window.setTimeout(() => {
        timer = undefined
        reload()
      }, SETTLE_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [live])
}

export interface Deed {
  readonly busy: boolean
  readonly error: AirlockError | undefined
  readonly run: (work: () => Promise<unknown>) => Promise<void>
}

/** Something that somebody does: one at a time, with the error of the last one. */
export function useDeed(): Deed {
  const { onSignedOut } = useSession()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<AirlockError>()
  const run = useCallback(async (work: () => Promise<unknown>) => {
    setBusy(true)
    setError(undefined)
    try {
      await work()
    } catch (thrown) {
      const known = toError(thrown)
      if (known.code === 'unauthenticated') onSignedOut()
      setError(known)
    } finally {
      setBusy(false)
    }
  }, [])
  return { busy, error, run }
}

export function toError(thrown: unknown): AirlockError {
  if (thrown instanceof AirlockError) return thrown
  return new AirlockError('internal', thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown })
}
