import type { Agent, AgentState, AgentSummary, RegisterAgentBody, UpdateAgentBody } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

export interface AgentListOptions {
  readonly state?: AgentState | undefined
  readonly approved?: boolean | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ChangeOptions {
  /** Nothing happens when the agent has another generation by now: `stale_generation`. */
  readonly expectedGeneration?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** The registry of agents. Registering is for everybody; to approve and to resume needs an admin. */
export class Agents {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Safe to repeat. The agent can have sandboxes once it is approved. */
  async register(id: string, options: Partial<Omit<RegisterAgentBody, 'id'>> & Signal = {}): Promise<Agent> {
    const { signal, ...rest } = options
    return this.#transport.json('registerAgent', { body: { id, ...rest }, signal })
  }

  /** One page, by name. */
  async list(
    options: AgentListOptions = {},
  ): Promise<{ readonly items: readonly Agent[]; readonly nextCursor: string | null }> {
    const { signal, labels = {}, ...rest } = options
    const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
    const query = { ...rest, label: pairs.length > 0 ? pairs.join(',') : undefined }
    return this.#transport.json('listAgents', { query, signal })
  }

  async get(id: string, signal?: AbortSignal): Promise<Agent> {
    return this.#transport.json('getAgent', { params: { id }, signal })
  }

  /** What it did in the last days, on the node that is asked. */
  async summary(id: string, options: { readonly days?: number | undefined } & Signal = {}): Promise<AgentSummary> {
    const { signal, days } = options
    return this.#transport.json('agentSummary', { params: { id }, query: { days }, signal })
  }

  /** What is absent stays as it is. */
  async update(
    id: string,
    options: Partial<Omit<UpdateAgentBody, 'expectedGeneration'>> & ChangeOptions,
  ): Promise<Agent> {
    const { signal, ...body } = options
    return this.#transport.json('updateAgent', { params: { id }, body, signal })
  }

  async approve(id: string, options: ChangeOptions = {}): Promise<Agent> {
    return this.#change('approveAgent', id, options)
  }

  /** Takes the approval back and ends the agent's sandboxes. */
  async revoke(id: string, options: ChangeOptions = {}): Promise<Agent> {
    return this.#change('revokeAgent', id, options)
  }

  /** Stops the agent until an admin resumes it, and ends its sandboxes. */
  async suspend(id: string, options: ChangeOptions = {}): Promise<Agent> {
    return this.#change('suspendAgent', id, options)
  }

  async resume(id: string, options: ChangeOptions = {}): Promise<Agent> {
    return this.#change('resumeAgent', id, options)
  }

  /** A sign of life; every use of a sandbox of the agent is one too. */
  async heartbeat(id: string, options: ChangeOptions = {}): Promise<Agent> {
    return this.#change('heartbeatAgent', id, options)
  }

  /** Deletes the agent and ends its sandboxes. */
  async remove(id: string, options: ChangeOptions = {}): Promise<void> {
    const { signal, expectedGeneration } = options
    await this.#transport.json('removeAgent', { params: { id }, query: { expectedGeneration }, signal })
  }

  async #change(name: Change, id: string, options: ChangeOptions): Promise<Agent> {
    const { signal, ...body } = options
    return this.#transport.json(name, { params: { id }, body, signal })
  }
}

type Change = 'approveAgent' | 'revokeAgent' | 'suspendAgent' | 'resumeAgent' | 'heartbeatAgent'

interface Signal {
  readonly signal?: AbortSignal | undefined
}
