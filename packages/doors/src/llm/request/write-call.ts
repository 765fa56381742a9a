import { type ModelRouteName, modelRouteOf } from '@airlock/contract'
import type { ModelCall } from './read-call.ts'

const ROUTES: Readonly<Record<ModelCall['name'], ModelRouteName>> = {
  chat: 'chat',
  responses: 'responses',
  embeddings: 'embeddings',
  messages: 'messages',
  countTokens: 'count_tokens',
}

export function modelRouteOfCall(call: Pick<ModelCall, 'name'>): ModelRouteName {
  return ROUTES[call.name]
}

/**
 * The body for `keys`, made of the fields that were understood and that the route of the contract lists. `call` is as `fitCall`
 * made it. `keys` adds who pays, and that nothing is stored.
 */
export function writeCall(call: ModelCall, upstreamModel: string): string {
  const { fields } = modelRouteOf(modelRouteOfCall(call))
  const body = { ...call.body, model: upstreamModel, ...usageOption(call) }
  return JSON.stringify(Object.fromEntries(Object.entries(body).filter(([name]) => fields.has(name))))
}

/** Usage of a stream of chat completions is reported only on demand. */
function usageOption(call: ModelCall): object {
  if (call.name !== 'chat' || call.body.stream !== true) return {}
  return { stream_options: { ...call.body.stream_options, include_usage: true } }
}
