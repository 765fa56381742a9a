import { z } from 'zod'

/** The API of an upstream. `litellm` and `compatible` stand for many providers. */
export const upstreamKind = z.enum(['openai', 'anthropic', 'litellm', 'compatible'])
export type UpstreamKind = z.infer<typeof upstreamKind>

export const upstreamName = z
  .string()
  .regex(/^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$/, 'must be lower-case letters, digits or -, at most 32')
export const modelName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$/, 'must be letters, digits, ".", "_", ":", "/", "@" or "-"')

/** No request of a call is longer. Images travel inside of it. */
export const MODEL_BODY_BYTES = 32 * 1024 * 1024

/** Versions of Anthropic's API that a call may ask for. */
export const ANTHROPIC_VERSIONS = ['2023-06-01', '2026-10-21'] as const
export const anthropicVersion = z.enum(ANTHROPIC_VERSIONS)
export type AnthropicVersion = z.infer<typeof anthropicVersion>

interface ModelRoute {
  /** Behind the version of the API. */
  readonly path: string
  /** Decides the headers, and where the version stands in a base URL. */
  readonly shape: 'openai' | 'anthropic'
  /** Fields that bound the output of one answer. One of them must be there, and each that is there is compared. */
  readonly outputFields: readonly string[]
  /** Multiplies the output. */
  readonly countField?: string
  /** Top-level fields of a body. Anything else is refused, so nothing else has an effect upstream. */
  readonly fields: ReadonlySet<string>
}

/**
 * Every route of upstreams. `fields` leaves out: names of the payer (`user`, `metadata`, `safety_identifier`), which are
 * written from the reservation; fields that change the price (`service_tier`); fields that keep state at the provider, under
 * the account that all tenants share (`store`, `previous_response_id`, `conversation`, `prompt`, `background`); and fields
 * that LiteLLM reads as commands (`api_base`, `fallbacks`, `mock_response`).
 */
export const MODEL_ROUTES = {
  chat: {
    path: '/chat/completions',
    shape: 'openai',
    outputFields: ['max_completion_tokens', 'max_tokens'],
    countField: 'n',
    fields:
      words(`model messages stream stream_options max_completion_tokens max_tokens n temperature top_p top_k stop seed
      presence_penalty frequency_penalty logit_bias logprobs top_logprobs response_format tools tool_choice
      parallel_tool_calls functions function_call reasoning_effort verbosity`),
  },
  responses: {
    path: '/responses',
    shape: 'openai',
    outputFields: ['max_output_tokens'],
    fields: words(`model input instructions stream stream_options max_output_tokens temperature top_p top_logprobs tools
      tool_choice parallel_tool_calls max_tool_calls reasoning text truncation include`),
  },
  embeddings: {
    path: '/embeddings',
    shape: 'openai',
    outputFields: [],
    fields: words('model input encoding_format dimensions'),
  },
  messages: {
    path: '/messages',
    shape: 'anthropic',
    outputFields: ['max_tokens'],
    fields:
      words(`model messages system stream max_tokens stop_sequences temperature top_p top_k tools tool_choice thinking
      output_config cache_control`),
  },
  count_tokens: {
    path: '/messages/count_tokens',
    shape: 'anthropic',
    outputFields: [],
    fields: words('model messages system tools tool_choice thinking output_config cache_control'),
  },
} as const satisfies Record<string, ModelRoute>

export type ModelRouteName = keyof typeof MODEL_ROUTES
export const modelRoute = z.enum(['chat', 'responses', 'embeddings', 'messages', 'count_tokens'])

const OPENAI = ['chat', 'responses', 'embeddings'] as const satisfies readonly ModelRouteName[]
const ANTHROPIC = ['messages', 'count_tokens'] as const satisfies readonly ModelRouteName[]

/** Routes of each kind of upstream. */
export const ROUTES_OF_KIND: Readonly<Record<UpstreamKind, readonly ModelRouteName[]>> = {
  openai: OPENAI,
  compatible: OPENAI,
  anthropic: ANTHROPIC,
  litellm: [...OPENAI, ...ANTHROPIC],
}

export function modelRouteOf(name: ModelRouteName): ModelRoute {
  return MODEL_ROUTES[name]
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/u))
}
