import { AirlockError, type Limits, type NodeSandbox, type Permit } from '@airlock/contract'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { GuestLink } from '../session/guest-link.ts'

/** What this process knows of one sandbox. */
export interface Entry {
  readonly permit: Permit
  readonly link: GuestLink
  readonly starting: AbortController
  state: NodeSandbox['state']
  /** What it stands on, once it does. */
  image: string | null
  lostReason: NodeSandbox['lostReason']
  /** What its guest was denied, if that ended it. */
  lostFor?: NodeSandbox['lostFor']
  /** Since when it is paused, and how long it was before that. */
  pausedAt: number | null
  sleptMs: number
  /** What it is held to; in a change that was broken off, what it should have become. */
  limits: Limits
  /** Its guest is from before it could hold processes to limits. */
  readonly isOld: boolean
}

export const AWAKE = { pausedAt: null, sleptMs: 0 } as const

export function isLiving({ state }: Entry): boolean {
  return state === 'running' || state === 'paused'
}

export function assertLiving(entry: Entry | undefined): asserts entry is Entry {
  if (!entry) throw new AirlockError('sandbox_not_found')
  if (entry.state === 'lost') throw new AirlockError('guest_lost')
  if (!isLiving(entry)) throw new AirlockError('sandbox_not_active')
}

export function lose(entry: Entry, reason: NonNullable<Entry['lostReason']>): void {
  entry.state = 'lost'
  entry.lostReason = reason
  // Whoever waits for the guest hears of it now.
  void entry.link.close(new AirlockError('guest_lost'))
}

/** Its guest is dead; its groups still know what it was denied. An end that came meanwhile stands. */
export async function bury(id: string, entry: Entry, backend: Pick<IsolationBackend, 'lostFor'>): Promise<void> {
  const lostFor = await backend.lostFor(id, entry.permit.tier)
  if (!isLiving(entry)) return
  entry.lostFor = lostFor
  lose(entry, 'guest_lost')
}

/** Whose it is, for records. */
export function who(entry: Entry | undefined): { tenant: string; agent: string | null; actor: string } {
  return { tenant: entry?.permit.tenant ?? 'system', agent: entry?.permit.agent ?? null, actor: 'system' }
}
