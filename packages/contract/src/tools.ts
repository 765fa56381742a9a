/** Everything about tools: services that sandboxes call, their secrets, and what the processes say to each other about a call. */
export {
  putSecretBody,
  sealKey,
  secret,
  SECRET_LENGTH,
  SECRET_VALUE,
  type PutSecretBody,
  type SealKey,
  type Secret,
} from './nouns/tools/secret.ts'
export {
  pathParameters,
  putToolBody,
  tool,
  TOOL_BOUNDS,
  toolName,
  toolSpec,
  type PutToolBody,
  type Tool,
  type ToolInput,
  type ToolParameter,
  type ToolParameters,
  type ToolSpec,
} from './nouns/tools/tool.ts'
export {
  closeToolCall,
  type CloseToolCall,
  type ListToolsCall,
  openedToolCall,
  type OpenedToolCall,
  type OpenToolCall,
  toolCallBody,
  toolDenied,
  type ToolInside,
  toolsInside,
} from './host/tool-calls.ts'
export { ORDER_LIFE_MS, signToolOrder, type ToolOrder, verifyToolOrder } from './host/tool-order.ts'
export { newSealKey, openSecret, parseSealKey, rawPublicKey, sealKeyId, sealSecret } from './host/sealed-secret.ts'
export { SEAL_KEY_FILE, sendTool, type SendTool, toolAnswer, type ToolAnswer } from './host/keys-api.ts'
