import {
  AirlockError,
  type AskAnswer,
  type ControlCall,
  type RenewedToken,
  type SandboxToken,
  type Self,
  type TokenFault,
  type TokenScope,
} from '@airlock/contract'
import { findAgent, type StoredAgent } from '../store/agents.ts'
import { findTokensVoidBefore } from '../store/sandbox-tokens.ts'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import type { Activity } from '../sandboxes/activity.ts'
import type { Connections } from './connections.ts'
import { askForSandbox } from './sandbox-asks.ts'
import type { Context } from '../app/context.ts'

/** Why a token opens nothing. It is evidence; who asked hears only that it was refused. */
type Refusal =
  | TokenFault
  | 'missing'
  | 'other sandbox'
  | 'sandbox ended'
  | 'sandbox not active'
  | 'agent gone'
  | 'agent not approved'
  | 'agent suspended'
  | 'old generation'
  | 'killed'
  | 'revoked'
  | 'not its scope'

interface Parts {
  readonly activity: Activity
  readonly connections: Connections
}

/**
 * What programs inside ask at the door of their sandbox. Who asks is known by the socket; the token must be that sandbox's,
 * and be good now: it is compared with the store at every use, so what was revoked, suspended or ended is over at once.
 */
export class DoorControl {
  readonly #context: Context
  readonly #parts: Parts

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  /** The signal aborts when nobody waits for the answer any more. */
  async answer(call: ControlCall, signal: AbortSignal): Promise<Self | RenewedToken | AskAnswer> {
    this.#context.readiness.assert('serving')
    const { token, sandbox } = await this.#admit(call)
    if (call.ask === 'renew') return this.#renew(sandbox)
    if (call.ask === 'ask') {
      this.#context.readiness.assert('granting')
      // Also after the answer of a person: much may have been taken away meanwhile.
      const assertGood = async () => void (await this.#admit(call))
      return askForSandbox(this.#context, { row: sandbox, call }, { signal, assertGood })
    }
    // Renewing is the guest's doing; only a program that says so is a sign of life.
    if (call.ask === 'heartbeat') this.#context.heartbeats.beat(sandbox)
    return this.#self(sandbox, token)
  }

  /** The sandbox of a program at another door, if its token is good there. */
  async admit(call: Pick<Asked, 'sandbox' | 'token'>, ask: 'tool'): Promise<StoredSandbox> {
    return (await this.#admit({ ...call, ask })).sandbox
  }

  async #admit(call: Asked): Promise<Good> {
    const row = await this.#context.store.query((db) => findSandbox(db, call.sandbox))
    const found = await this.#judge(call, row)
    if (typeof found === 'string') throw this.#refuse(call, row, found)
    return found
  }

  async #judge(call: Asked, row: StoredSandbox | undefined): Promise<Good | Refusal> {
    const { sandboxTokens, clock, store, kills } = this.#context
    const token = call.token === null ? 'missing' : sandboxTokens.read(call.token, clock.now())
    if (typeof token === 'string') return token
    if (token.sandbox !== call.sandbox) return 'other sandbox'
    if (row?.state !== 'active') return row?.state === 'paused' ? 'sandbox not active' : 'sandbox ended'
    if (kills.covers({ tenant: row.tenant, agent: row.agent, sandbox: row.id })) return 'killed'
    const agent = await store.query((db) => findAgent(db, row))
    const voidBefore = (await store.query((db) => findTokensVoidBefore(db, row.id))) ?? 0
    const refusal = token.issuedAt < voidBefore ? 'revoked' : whyNot({ token, sandbox: row }, agent, call.ask)
    return refusal ?? { token, sandbox: row }
  }

  /** It continues, so its record comes first (G7). */
  async #renew(row: StoredSandbox): Promise<RenewedToken> {
    const { sandboxTokens, clock, audit, readiness } = this.#context
    readiness.assert('granting')
    const { text, tokenId: issued, lifeMs, expiresAt: at } = sandboxTokens.issue(row, clock.now())
    const expiresAt = new Date(at).toISOString()
    const { tenant, agent, id: sandbox } = row
    const payload = { cause: 'renewal', issued, expiresAt }
    const actor = actorOf(sandbox)
    await audit.require({ tenant, agent, sandbox, actor, point: 'sandbox.connect', status: 'done', payload })
    this.#parts.connections.renewed(sandbox, { text, tokenId: issued, lifeMs, expiresAt: at })
    return { token: text, lifeMs, expiresAt }
  }

  #self(row: StoredSandbox, token: SandboxToken): Self {
    const { id: sandbox, tenant, agent, generation } = row
    return {
      sandbox,
      tenant,
      agent,
      generation,
      scopes: token.scopes,
      expiresAt: new Date(token.expiresAt).toISOString(),
      sandboxExpiresAt: new Date(this.#parts.activity.current(row).expiresAt).toISOString(),
    }
  }

  /** In the evidence of the tenant whose socket it was, whatever the token says. */
  #refuse({ sandbox, ask }: Asked, row: StoredSandbox | undefined, reason: Refusal): AirlockError {
    const { tenant = 'system', agent = null } = row ?? {}
    const payload = { reason, door: ask === 'tool' ? 'broker' : 'control', ask }
    const who = { tenant, agent, sandbox, actor: actorOf(sandbox) }
    this.#context.audit.note({ ...who, point: 'auth.refuse', status: 'denied', payload })
    return new AirlockError('token_refused', reason === 'expired' ? 'The token has expired.' : undefined)
  }
}

interface Asked {
  readonly sandbox: string
  readonly token: string | null
  readonly ask: TokenScope
}

interface Good {
  readonly token: SandboxToken
  readonly sandbox: StoredSandbox
}

/** Why a token that is whole and in time is worthless all the same. */
function whyNot({ token, sandbox }: Good, agent: StoredAgent | undefined, ask: TokenScope): Refusal | undefined {
  if (!agent || token.tenant !== sandbox.tenant || token.agent !== sandbox.agent) return 'agent gone'
  if (!agent.approved) return 'agent not approved'
  if (agent.state === 'suspended') return 'agent suspended'
  if (token.generation !== agent.generation) return 'old generation'
  return token.scopes.includes(ask) ? undefined : 'not its scope'
}

function actorOf(sandbox: string): string {
  return `sandbox:${sandbox}`
}
