import type { Approval, ApprovalDetail } from '@airlock/sdk'
import { sanitizeLine, sanitizeText } from './sanitize.ts'
import type { Cell } from './table.ts'
import type { Style } from './terminal.ts'

const RISKS: Readonly<Record<Approval['decision']['risk'], Style>> = {
  low: 'dim',
  medium: 'yellow',
  high: 'red',
  critical: 'red',
}
const STATES: Readonly<Partial<Record<Approval['state'], Style>>> = { pending: 'yellow', approved: 'green' }

export function riskCell({ decision }: Approval): Cell {
  return { text: decision.risk, style: RISKS[decision.risk] }
}

export function stateCell({ state, scope }: Approval): Cell {
  const text = state === 'approved' && scope !== null ? `${state} (${scope})` : state
  return { text, style: STATES[state] ?? 'dim' }
}

/** Everything about an ask but what is to be done. */
export function approvalFacts(approval: Approval): readonly (readonly [string, string | Cell])[] {
  const { decision, answeredBy, note } = approval
  const asking = decision.rules.filter(({ effect }) => effect === 'ask')
  return [
    ['ask', approval.id],
    ['state', stateCell(approval)],
    ['risk', riskCell(approval)],
    ['asked by', `${approval.requester}, for agent ${approval.agent ?? '-'}`],
    ['in', approval.sandbox ?? '-'],
    ['to', approval.point],
    ...asking.map(({ policy, rule, reason }) => ['because', `${reason} (${policy}/${rule})`] as const),
    ['good until', approval.expiresAt],
    ...(answeredBy === null ? [] : [['answered by', answeredBy] as const]),
    ...(note === null ? [] : [['note', note] as const]),
    ['request', `sha256 ${approval.hash}`],
  ]
}

/** What is to be done, whole: each word of a command on a line of its own when one of them is long, code as it stands. */
export function operationText(operation: ApprovalDetail['question']['operation']): string {
  if (operation.kind === 'command') {
    const words = operation.argv.map((word) => sanitizeLine(JSON.stringify(word)))
    const env = operation.env.length === 0 ? [] : [`with variables ${operation.env.map(sanitizeLine).join(' ')}`]
    return [words.join(' '), `in ${sanitizeLine(operation.cwd)}`, ...env].join('\n')
  }
  if (operation.kind === 'code') return sanitizeText(operation.code)
  return sanitizeText(JSON.stringify(operation, null, 2))
}
