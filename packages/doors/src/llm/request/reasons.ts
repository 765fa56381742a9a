/** Rule kinds that do not exist yet. A rule of kind `model` gives none of them. */
type LaterKind = 'model-tool' | 'model-fetch' | 'model-state' | 'model-price'

const WHY: Readonly<Record<LaterKind, string>> = {
  'model-tool': 'runs a tool at the provider',
  'model-fetch': 'lets the provider fetch a URL',
  'model-state': 'uses state that the provider keeps for the account of the server',
  'model-price': 'costs what the price table of the server does not have',
}

const INSTEAD: Readonly<Record<LaterKind, string>> = {
  'model-tool': 'Define a function tool, and run it in the sandbox.',
  'model-fetch': 'Send the bytes as a data: URL or as base64.',
  'model-state': 'Send the whole conversation.',
  'model-price': 'Leave it out.',
}

const IDENTITY = 'says who asks or pays, which is decided outside of the sandbox. Leave it out.'

/** Fields that providers have and that are refused for a reason. Others are refused as unknown. */
const FIELDS: Readonly<Record<string, LaterKind | 'identity'>> = {
  mcp_servers: 'model-tool',
  web_search_options: 'model-tool',
  max_tool_calls: 'model-tool',
  defer_loading: 'model-tool',
  server_url: 'model-tool',
  connector_id: 'model-tool',
  file_url: 'model-fetch',
  previous_response_id: 'model-state',
  conversation: 'model-state',
  prompt: 'model-state',
  thread: 'model-state',
  container: 'model-state',
  context_management: 'model-state',
  compaction: 'model-state',
  diagnostics: 'model-state',
  file_id: 'model-state',
  file_ids: 'model-state',
  prompt_cache_retention: 'model-state',
  prompt_cache_options: 'model-price',
  prompt_cache_breakpoint: 'model-price',
  prediction: 'model-price',
  audio: 'model-price',
  modalities: 'model-price',
  moderation: 'model-price',
  inference_geo: 'model-price',
  fallbacks: 'model-price',
  fallback_credit_token: 'identity',
  billing_policy: 'identity',
  workspace_id: 'identity',
  user_profile_id: 'identity',
  access_programs: 'identity',
}

/** Types of tools, content and items that providers have. Dated versions share a beginning. */
const TYPES: readonly (readonly [RegExp, LaterKind])[] = [
  [/^(?:web_|file_search|code_|computer|browser|image_generation|tool_search|programmatic)/, 'model-tool'],
  [
    /^(?:mcp|server_tool|bash_code|text_editor_code|tool_reference|namespace|local_shell|shell|apply_patch)/,
    'model-tool',
  ],
  [/^(?:url|file_url)$/, 'model-fetch'],
  [/^(?:item_reference|container_upload|compaction|file$|additional_tools|program|configuration)/, 'model-state'],
  [/^(?:input_audio|audio)$/, 'model-price'],
]

/** One sentence why, and one what to do instead. */
export function refuseField(path: string, field: string): string {
  const reason = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined
  if (reason === undefined) return `"${path}" is not a field that the model door passes on. Leave it out.`
  return reason === 'identity' ? `"${path}" ${IDENTITY}` : `"${path}" ${because(reason)}`
}

export function refuseType(path: string, type: string): string {
  const [, kind] = TYPES.find(([pattern]) => pattern.test(type)) ?? []
  const what = `"${path}" ${JSON.stringify(type)}`
  return kind ? `${what} ${because(kind)}` : `${what} is not a value that the model door passes on.`
}

/** Follows the name of what is refused. */
export function because(kind: LaterKind): string {
  return `${WHY[kind]}; that would need a rule of kind ${kind}, and no such rule exists yet. ${INSTEAD[kind]}`
}
