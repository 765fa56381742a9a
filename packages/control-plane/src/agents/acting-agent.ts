import { AirlockError, DEFAULT_AGENT, type Principal } from '@airlock/contract'

/**
 * The agent that a caller acts for: the one that it names; else the one that it is bound to; else, of a caller that is bound to
 * none, the default agent. Nobody guesses among several. Whether the caller may act for a named one is for `admit` to say.
 */
export function actingAgent({ agents }: Pick<Principal, 'agents'>, named: string | undefined): string {
  if (named !== undefined) return named
  if (agents === null) return DEFAULT_AGENT
  const [first, ...others] = agents
  if (first !== undefined && others.length === 0) return first
  throw new AirlockError(
    'agent_required',
    `The key is bound to several agents, and none was named: ${agents.join(', ')}.`,
  )
}
