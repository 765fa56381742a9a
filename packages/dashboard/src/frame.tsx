import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LiveState } from './live.ts'
import { Icon, type IconName } from './parts/icon.tsx'
import type { Route } from './route.ts'
import { toError, useLoaded, useSession } from './session.ts'
import { visibleLine } from './text/visible.ts'

interface Entry {
  readonly page: Route['page']
  readonly title: string
  readonly icon: IconName
}

const ENTRIES: readonly Entry[] = [
  { page: 'overview', title: 'Overview', icon: 'overview' },
  { page: 'sandboxes', title: 'Sandboxes', icon: 'sandboxes' },
  { page: 'approvals', title: 'Approvals', icon: 'approvals' },
  { page: 'evidence', title: 'Evidence', icon: 'evidence' },
  { page: 'killswitch', title: 'Killswitch', icon: 'killswitch' },
]
const PARENTS: Partial<Record<Route['page'], Route['page']>> = { sandbox: 'sandboxes', record: 'evidence' }

/** What is around every page: where one is, who one is, and whether it is live. */
export function Frame({ route, children }: { readonly route: Route; readonly children: ComponentChildren }) {
  const here = PARENTS[route.page] ?? route.page
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = `${ENTRIES.find(({ page }) => page === here)?.title ?? 'Overview'} · Airlock`
    // Who uses a keyboard goes on in the new page, not at the end of the old one.
    if (!isFirst.current) main.current?.focus()
    isFirst.current = false
    scrollTo(0, 0)
  }, [JSON.stringify(route)])
  return (
    <div class="frame">
      <header class="side">
        <a class="brand" href="#/">
          <Icon name="brand" /> Airlock
        </a>
        <nav aria-label="Pages">
          {ENTRIES.map((entry) => (
            <NavLink key={entry.page} entry={entry} isHere={entry.page === here} />
          ))}
        </nav>
        <Account />
      </header>
      <main ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

function NavLink({ entry, isHere }: { readonly entry: Entry; readonly isHere: boolean }) {
  const { page, title, icon } = entry
  return (
    <a href={page === 'overview' ? '#/' : `#/${page}`} aria-current={isHere ? 'page' : undefined}>
      <Icon name={icon} />
      <span>{title}</span>
      {page === 'approvals' && <Waiting />}
    </a>
  )
}

function Waiting() {
  const { client } = useSession()
  const { value } = useLoaded(async (signal) => client.approvals.list({ limit: 100, signal }), {
    by: [],
    on: ({ point }) => point.startsWith('approval.'),
    everyMs: 30_000,
  })
  const count = value?.items.length ?? 0
  if (count === 0) return null
  return (
    <b class="count" aria-label={`${count} waiting`}>
      {count}
    </b>
  )
}

function Account() {
  const { who, server, onSignedOut } = useSession()
  const [problem, setProblem] = useState<string>()
  const signOut = (): void =>
    void server.signOut().then(onSignedOut, (error: unknown) => setProblem(toError(error).message))
  return (
    <div class="account">
      <LiveMark />
      <p class="who">
        <strong>{who.role}</strong>
        <span>
          {visibleLine(who.tenant)}
          {who.platform ? ' · platform' : ''}
        </span>
      </p>
      <button type="button" class="quiet" onClick={signOut}>
        Sign out
      </button>
      {problem !== undefined && <p role="alert">{problem}</p>}
    </div>
  )
}

const LIVE_WORDS: Record<LiveState, string> = { connecting: 'Connecting', live: 'Live', lost: 'Not live' }

function LiveMark() {
  const { live } = useSession()
  const [state, setState] = useState(live.state)
  useEffect(() => live.onState(setState), [live])
  return (
    <p class={`live ${state}`} role="status">
      {LIVE_WORDS[state]}
    </p>
  )
}
