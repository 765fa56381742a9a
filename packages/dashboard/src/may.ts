import type { Identity } from '@airlock/sdk/browser'

/** What the page offers to somebody. The server decides; a test compares this with its table of routes. */
export interface May {
  /** Run commands; pause, resume, extend and terminate sandboxes. */
  readonly operate: boolean
  readonly answer: boolean
  readonly kill: boolean
  readonly lift: boolean
  readonly killAll: boolean
}

export function rightsOf({ role, agents, platform }: Identity): May {
  const isFree = agents === null
  const isGuard = isFree && (role === 'admin' || role === 'operator')
  return {
    operate: role !== 'auditor',
    answer: isGuard,
    kill: isGuard,
    lift: isFree && role === 'admin',
    killAll: isGuard && platform,
  }
}

/** Why a right is missing, for people. */
export function whyNot({ role, agents }: Identity, needs: string): string {
  return agents === null
    ? `Your role is ${role}; this needs ${needs}.`
    : 'Keys that are bound to agents may not do this.'
}
