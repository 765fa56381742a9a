import { ERRORS, isErrorCode, type RouteName } from '@airlock/contract'

/** Routes that answer as the API of OpenAI does. */
const OPENAI: ReadonlySet<RouteName | 'mcp' | 'page'> = new Set<RouteName>(['openaiChat', 'openaiModels'])

export function isOpenai(name: RouteName | 'mcp' | 'page' | null): boolean {
  return name !== null && OPENAI.has(name)
}

/** An error as clients of OpenAI read it: the code is ours, the type is one of theirs. */
export function openaiError({ code, message }: { readonly code: string; readonly message: string }) {
  const status = isErrorCode(code) ? ERRORS[code].status : 500
  return { message, type: typeOf(status), param: null, code }
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 403 || status === 428) return 'permission_error'
  if (status === 402) return 'insufficient_quota'
  if (status === 429) return 'rate_limit_error'
  return status < 500 ? 'invalid_request_error' : 'server_error'
}
