/** Everything about models: what is served, how a call is reserved, and what the processes say to each other about it. */
export { llmStatus, model, type LlmStatus, type Model } from './nouns/model.ts'
export {
  modelLimits,
  modelNames,
  someModelLimits,
  type ModelLimits,
  type SomeModelLimits,
} from './nouns/sandbox-models.ts'
export {
  closeModelCall,
  modelUsage,
  openedModelCall,
  openModelCall,
  type CloseModelCall,
  type ModelUsage,
  type OpenedModelCall,
  type OpenModelCall,
} from './host/model-calls.ts'
export {
  costOf,
  DEMO_MODEL,
  modelPrices,
  servedModel,
  type ModelPrices,
  type ServedModel,
} from './host/served-model.ts'
export {
  CALL_HEADERS,
  KEYS_LIFE_FILE,
  keysHealth,
  RESERVATION_KEY_FILE,
  type KeysHealth,
  type UpstreamHealth,
} from './host/keys-api.ts'
export {
  ANTHROPIC_VERSIONS,
  anthropicVersion,
  type AnthropicVersion,
  MODEL_BODY_BYTES,
  modelName,
  modelRouteOf,
  ROUTES_OF_KIND,
  upstreamKind,
  upstreamName,
  type ModelRouteName,
  type UpstreamKind,
} from './host/model-routes.ts'
export {
  RESERVATION_LIFE_MS,
  signReservation,
  verifyReservation,
  type CallIdentity,
  type Reservation,
} from './host/reservation.ts'
