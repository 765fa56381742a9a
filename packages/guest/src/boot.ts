import type { AgentBoot, GuestBoot } from '@airlock/contract/guest'
import { GuestFailure } from './failure.ts'

/** The host wrote it, so only its being there is checked. */
export function parseBoot(text: string | undefined): GuestBoot | AgentBoot {
  if (text === undefined) throw new GuestFailure('invalid_request', 'usage: guest.cjs <boot JSON>')
  return JSON.parse(text) as GuestBoot | AgentBoot
}
