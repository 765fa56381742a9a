/** Whose client asks: it decides the shape of errors and of lists of models. */
export type Protocol = 'openai' | 'anthropic'

/** Routes with a body, each with a schema of its own in `request`. */
export type CallName = 'chat' | 'responses' | 'embeddings' | 'messages' | 'countTokens'

export type FoundRoute = { readonly protocol: Protocol } & (
  | { readonly name: CallName | 'models' | 'health' }
  | { readonly name: 'model'; readonly model: string }
)

/** As `node:http` parses headers: names in lower case. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

export interface AskedRoute {
  readonly method: string
  /** The request target as it stands in the request line. */
  readonly target: string
  readonly headers: Headers
}

const CALLS: ReadonlyMap<string, CallName> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/responses', 'responses'],
  ['/v1/embeddings', 'embeddings'],
  ['/v1/messages', 'messages'],
  ['/v1/messages/count_tokens', 'countTokens'],
])

/** Parameters that SDKs add by themselves. None goes upstream: lists are whole, and betas are a header. */
const IGNORED_PARAMETERS: ReadonlySet<string> = new Set(['beta', 'limit', 'after_id', 'before_id'])

const MODEL_PATH = '/v1/models/'
/** Slashes are part of names such as `airlock/demo`. */
const MODEL_NAME = /^[A-Za-z0-9][\w.:@-]*(?:\/[A-Za-z0-9][\w.:@-]*)*$/
const MAX_MODEL_NAME = 256

/** The closed list. Undefined for everything else: paths are compared as they stand, never decoded or normalised. */
export function findRoute({ method, target, headers }: AskedRoute): FoundRoute | undefined {
  const [path = '', query, ...more] = target.split('?')
  if (more.length > 0 || !isIgnored(query)) return undefined
  const protocol = protocolOf({ target, headers })
  if (method === 'POST') {
    const name = CALLS.get(path)
    return name && { name, protocol }
  }
  if (method !== 'GET') return undefined
  if (path === '/health') return { name: 'health', protocol }
  if (path === '/v1/models') return { name: 'models', protocol }
  const model = path.startsWith(MODEL_PATH) ? readModelName(path.slice(MODEL_PATH.length)) : undefined
  return model === undefined ? undefined : { name: 'model', model, protocol }
}

/** Also for requests that no route takes: their error is read by the same SDK. */
export function protocolOf({ target, headers }: Pick<AskedRoute, 'target' | 'headers'>): Protocol {
  const isMessages = /^\/v1\/messages(?:$|[/?])/.test(target)
  return isMessages || headers['anthropic-version'] !== undefined ? 'anthropic' : 'openai'
}

export function isModelName(name: string): boolean {
  return name.length <= MAX_MODEL_NAME && MODEL_NAME.test(name)
}

function isIgnored(query: string | undefined): boolean {
  return query === undefined || [...new URLSearchParams(query).keys()].every((key) => IGNORED_PARAMETERS.has(key))
}

/** SDKs encode the slashes of a name. */
function readModelName(encoded: string): string | undefined {
  if (encoded.length > 3 * MAX_MODEL_NAME) return undefined
  try {
    const name = decodeURIComponent(encoded)
    return isModelName(name) ? name : undefined
  } catch {
    // Not percent-encoding: it names no model.
    return undefined
  }
}
