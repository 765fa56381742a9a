import { assertNever } from '@airlock/std'
import type { ModelTerms } from '../terms/model-terms.ts'
import { isStream, type ModelCall } from './read-call.ts'
import type { ReadHeaders } from './read-headers.ts'

/** Who is behind a call, as the server decided it. */
export interface CallIdentity {
  readonly upstreamKind: 'openai' | 'anthropic' | 'litellm' | 'compatible'
  /** The billing account, in a form that the provider may see. */
  readonly account: string
  /** Such as `x-litellm-end-user-id`. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

export interface UpstreamRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface CallToWrite {
  /** As `fitCall` made it. */
  readonly call: ModelCall
  readonly headers: ReadHeaders
}

const PATHS: Readonly<Record<ModelCall['name'], string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  embeddings: '/v1/embeddings',
  messages: '/v1/messages',
  countTokens: '/v1/messages/count_tokens',
}

/** What goes upstream: made anew, of the fields that were understood and of what is ours. Keys are added elsewhere. */
export function writeCall(
  { call, headers }: CallToWrite,
  { terms, identity }: { terms: Pick<ModelTerms, 'upstreamModel' | 'betas'>; identity: CallIdentity },
): UpstreamRequest {
  const body = { ...call.body, model: terms.upstreamModel, ...ours(call, identity) }
  return {
    path: PATHS[call.name],
    headers: { ...writeHeaders({ call, headers }, terms.betas), ...identity.headers },
    body: JSON.stringify(body),
  }
}

function writeHeaders({ call, headers }: CallToWrite, betas: readonly string[]): Record<string, string> {
  const fixed = {
    'content-type': 'application/json',
    accept: isStream(call) ? 'text/event-stream' : 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'airlock',
  }
  if (call.name !== 'messages' && call.name !== 'countTokens') return fixed
  const granted = headers.betas.filter((beta) => betas.includes(beta)).join(',')
  return { ...fixed, 'anthropic-version': headers.version, ...(granted === '' ? {} : { 'anthropic-beta': granted }) }
}

/** The fields that no client decides. */
function ours(call: ModelCall, identity: CallIdentity): object {
  switch (call.name) {
    case 'chat': {
      const usage = call.body.stream ? { stream_options: { ...call.body.stream_options, include_usage: true } } : {}
      return { ...usage, ...userOf(identity), ...(identity.upstreamKind === 'openai' ? { store: false } : {}) }
    }
    case 'responses':
      return { store: false, background: false, ...userOf(identity) }
    case 'embeddings':
      return { user: identity.account }
    case 'messages':
      return { metadata: { user_id: identity.account } }
    case 'countTokens':
      return {}
    default:
      return assertNever(call)
  }
}

/** `user` is what gateways bill by. OpenAI itself has two fields in its place; other servers may refuse those. */
function userOf({ upstreamKind, account }: CallIdentity): object {
  const own = { safety_identifier: account, prompt_cache_key: account }
  return { user: account, ...(upstreamKind === 'openai' ? own : {}) }
}
