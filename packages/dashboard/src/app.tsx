import type { Identity } from '@airlock/sdk/browser'
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { Frame } from './frame.tsx'
import { Live } from './live.ts'
import { ApprovalsPage } from './pages/approvals.tsx'
import { EvidencePage } from './pages/evidence.tsx'
import { KillswitchPage } from './pages/killswitch.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { RecordPage } from './pages/record.tsx'
import { SandboxPage } from './pages/sandbox.tsx'
import { SandboxesPage } from './pages/sandboxes.tsx'
import { SignInPage } from './pages/sign-in.tsx'
import { type Route, useRoute } from './route.ts'
import type { Server } from './server.ts'
import { SessionContext, toError } from './session.ts'

type Who = Identity | 'nobody' | 'unknown'

export function App({ server }: { readonly server: Server }) {
  const route = useRoute()
  const [who, setWho] = useState<Who>('unknown')
  const [problem, setProblem] = useState<string>()
  const look = useCallback(async () => {
    try {
      const found = await server.whoami()
      setWho(found ?? 'nobody')
      if (found) setProblem(undefined)
    } catch (error) {
      setProblem(toError(error).message)
      setWho('nobody')
    }
  }, [server])
  const link = route.page === 'sign-in' ? route.link : ''
  useEffect(() => {
    void (link === '' ? look() : signInByLink(server, link, setProblem).then(look))
  }, [link])
  if (who === 'unknown') return <main class="blank" aria-busy="true" />
  if (who === 'nobody') return <SignInPage server={server} problem={problem} onSignedIn={() => void look()} />
  return <SignedIn server={server} who={who} route={route} onSignedOut={() => setWho('nobody')} />
}

/** The link is spent and taken out of the history, good or not. */
async function signInByLink(server: Server, link: string, onProblem: (text: string) => void): Promise<void> {
  history.replaceState(null, '', '#/')
  dispatchEvent(new HashChangeEvent('hashchange'))
  await server.signIn({ link }).catch((error: unknown) => {
    const { message, hint } = toError(error)
    onProblem(`${message} ${hint}`)
  })
}

interface SignedInProps {
  readonly server: Server
  readonly who: Identity
  readonly route: Route
  readonly onSignedOut: () => void
}

function SignedIn({ server, who, route, onSignedOut }: SignedInProps) {
  const live = useMemo(() => new Live(server.client, onSignedOut), [server, who])
  useEffect(() => {
    const gone = new AbortController()
    void live.run(gone.signal)
    return () => gone.abort()
  }, [live])
  const session = useMemo(() => ({ server, live, who, onSignedOut }), [server, live, who])
  return (
    <SessionContext.Provider value={session}>
      <Frame route={route}>{pageOf(route)}</Frame>
    </SessionContext.Provider>
  )
}

function pageOf(route: Route) {
  switch (route.page) {
    case 'sandboxes':
      return <SandboxesPage />
    case 'sandbox':
      return <SandboxPage key={route.id} id={route.id} />
    case 'approvals':
      return <ApprovalsPage />
    case 'evidence':
      return <EvidencePage />
    case 'record':
      return <RecordPage key={route.seq} seq={route.seq} />
    case 'killswitch':
      return <KillswitchPage />
    case 'overview':
    case 'sign-in':
      return <OverviewPage />
  }
}
