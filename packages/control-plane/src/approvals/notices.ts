import type { Clock, Notice } from '@airlock/std'
import type { ApprovalNews } from './news.ts'
import type { StoredApproval } from '../store/approvals.ts'
import { toApproval } from './nouns.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'

/** A terminal that scrolls away shows nothing: so many asks in a minute are shown, the others are counted. */
const SHOWN = 10
const MINUTE_MS = 60_000

interface World {
  readonly news: ApprovalNews
  readonly webhooks: Webhooks
  readonly clock: Clock
  /** Shows an ask to who sits at the terminal of the server. */
  readonly onNotice: (notice: Notice) => void
}

/** Tells webhooks and the terminal of asks and answers, as they come. */
export function noticeApprovals({ news, webhooks, clock, onNotice }: World): void {
  let shown: readonly number[] = []
  let hidden = 0
  news.subscribe((row) => {
    const now = clock.now()
    const approval = toApproval(row, now)
    const isPending = approval.state === 'pending'
    // That it was used is told by who uses it.
    if (approval.state !== 'used')
      webhooks.send(row.tenant, isPending ? 'approval.pending' : 'approval.answered', { approval })
    if (!isPending) return
    shown = shown.filter((at) => at > now - MINUTE_MS)
    if (shown.length >= SHOWN) return void hidden++
    shown = [...shown, now]
    onNotice(toNotice(row, hidden))
    hidden = 0
  })
}

function toNotice(row: StoredApproval, hidden: number): Notice {
  const { id, requester, agent, summary, decision } = row
  const reason = decision.rules.find(({ effect }) => effect === 'ask')?.reason ?? 'no policy allows it without.'
  const until = new Date(row.expiresAt).toISOString().slice(11, 16)
  const others = hidden === 0 ? [] : [`${hidden} more asked meanwhile: approvals ls`]
  return {
    title: `Approve? (${decision.risk}) ${summary}`,
    details: [`${requester} asks for agent ${agent ?? '-'}, until ${until} UTC: ${reason}`, ...others],
    commands: [`approvals approve ${id}`, `approvals reject ${id}`],
  }
}
