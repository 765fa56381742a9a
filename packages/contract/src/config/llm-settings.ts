import { z } from 'zod'
import { AirlockError } from '../errors.ts'
import { modelName, upstreamKind, upstreamName } from '../host/model-routes.ts'
import { modelPrice } from './model-price.ts'
import { isPrivateAddress } from './private-address.ts'

interface Setting {
  readonly schema: z.ZodType
  readonly about: string
}

const setting = <T extends z.ZodType>(schema: T, about: string) => ({ schema, about }) satisfies Setting
const tokens = z.int().min(1).max(100_000_000)
const MAX_MODELS = 500

/** Prefix of models that are not an upstream's. */
const RESERVED = 'airlock/'
const servedName = modelName.refine((name) => !name.startsWith(RESERVED), `must not begin with ${RESERVED}`)

/** A model of an upstream: `[llm.upstream.NAME.models."SERVED NAME"]`. */
export const MODEL_SETTINGS = {
  upstream_name: setting(modelName.optional(), 'Name of the model at the upstream; the served name by default.'),
  context_window: setting(tokens, 'Tokens of a request and its answer, at most.'),
  max_output: setting(z.int().min(0).max(100_000_000), 'Tokens of an answer, at most; 0 for embeddings.'),
  price: setting(
    modelPrice,
    '`{ input, output, cache_read, cache_write }`, each in dollars for a million tokens, as numbers or texts with at most six decimals; or `"free"`. A model without a price is refused.',
  ),
} as const satisfies Record<string, Setting>

/** An upstream: `[llm.upstream.NAME]`. */
export const UPSTREAM_SETTINGS = {
  kind: setting(
    upstreamKind,
    '`openai`, `anthropic`, `litellm` (both APIs, for many providers) or `compatible` (the API of OpenAI).',
  ),
  base_url: setting(
    z.string().transform(parseBaseUrl),
    'Base URL as the SDK of that kind takes it: `https`, or `http` at loopback and private addresses only.',
  ),
  key_file: setting(
    z
      .string()
      .regex(/^\/[^\0]+$/, 'must be the absolute path of a file')
      .optional(),
    'Absolute path of a file of root with mode 0600 that holds the key on one line, 16 characters at least. Only `compatible` can do without. A file that changes is read again.',
  ),
  models: setting(
    z
      .record(servedName, z.strictObject(schemas(MODEL_SETTINGS)))
      .refine((models) => Object.keys(models).length > 0, 'must list at least one model')
      .refine((models) => Object.keys(models).length <= MAX_MODELS, `must list at most ${MAX_MODELS} models`),
    'Models by served name. A name belongs to one upstream.',
  ),
  aliases: setting(z.record(servedName, servedName).default({}), 'Other served names: `alias = "served name"`.'),
  connect_timeout_s: setting(z.number().min(1).max(60).default(10), 'Bound on connecting, in seconds.'),
  first_byte_timeout_s: setting(
    z.number().min(1).max(3600).default(600),
    'Bound on the time until an answer begins, in seconds.',
  ),
  read_timeout_s: setting(
    z
      .number()
      .min(1)
      .max(24 * 3600)
      .default(3600),
    'Bound on silence within an answer, in seconds.',
  ),
  max_concurrent: setting(z.int().min(1).max(4096).default(64), 'Calls at once; more is upstream_busy.'),
} as const satisfies Record<string, Setting>

const upstream = z
  .strictObject(schemas(UPSTREAM_SETTINGS))
  .refine(({ kind, key_file }) => kind === 'compatible' || key_file !== undefined, {
    path: ['key_file'],
    error: 'is missing: only upstreams of kind compatible can do without a key',
  })
  .superRefine(({ models, aliases }, context) => {
    for (const [name, { context_window, max_output }] of Object.entries(models))
      if (max_output > context_window)
        context.addIssue({ code: 'custom', path: ['models', name, 'max_output'], message: 'is above context_window' })
    for (const [alias, name] of Object.entries(aliases))
      if (!Object.hasOwn(models, name))
        context.addIssue({ code: 'custom', path: ['aliases', alias], message: 'names a model that is not listed' })
  })
export type UpstreamSettings = z.output<typeof upstream>

const MAX_UPSTREAMS = 32

const llm = z
  .strictObject({
    upstream: z
      .record(upstreamName, upstream)
      .default({})
      .refine((all) => Object.keys(all).length <= MAX_UPSTREAMS, `at most ${MAX_UPSTREAMS} upstreams`),
  })
  .superRefine(({ upstream: all }, context) => {
    const owners = new Map<string, string>()
    for (const [owner, { models, aliases }] of Object.entries(all))
      for (const name of [...Object.keys(models), ...Object.keys(aliases)]) {
        const other = owners.get(name)
        owners.set(name, owner)
        const where = other === owner ? 'is a model and an alias' : `is served by ${other} too`
        if (other !== undefined) context.addIssue({ code: 'custom', path: ['upstream', owner, name], message: where })
      }
  })
export type LlmSettings = z.output<typeof llm>

/** The schema of `[llm]`, which is in `airlock.toml` alone: tables have no variables. */
export const llmSettings = llm.default({ upstream: {} })

/** Names that people give to keys. */
const KEY_NAME = /^(?:\w*[_-])?(?:key|token|secret|password|passwd|credentials?|authorization|bearer)$/i

/**
 * Refuses a key in `airlock.toml`, for that file is copied around. Comes before any other error could quote it; the value is
 * never repeated.
 */
export function throwOnKeys(file: unknown, path: readonly string[] = ['llm']): void {
  if (typeof file !== 'object' || file === null) return
  for (const [name, value] of Object.entries(file)) {
    const at = [...path, name]
    // Aliases are names of models.
    if (at.length === 4 && name === 'aliases') continue
    if (KEY_NAME.test(name) && typeof value === 'string')
      throw new AirlockError('config_invalid', `${at.join('.')}: a key must not be in airlock.toml.`, {
        hint: 'Write the key to a file of its own, run "chmod 600" on that file, and set key_file to its path.',
      })
    throwOnKeys(value, at)
  }
}

interface BaseUrl {
  readonly origin: string
  /** Without a slash at its end. */
  readonly path: string
}

function parseBaseUrl(text: string, context: z.RefinementCtx): BaseUrl {
  const url = URL.parse(text)
  const fault = url === null ? 'must be a URL' : faultOf(url)
  // The text is not repeated: it may hold a password.
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
  return { origin: url?.origin ?? '', path: (url?.pathname ?? '').replace(/\/+$/u, '') }
}

function faultOf(url: URL): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be https, or http at a private address'
  if (url.username !== '' || url.password !== '') return 'must not hold a user or a password: set key_file'
  if (url.search !== '' || url.hash !== '') return 'must not have a query or a fragment'
  return url.protocol === 'http:' && isPublicAddress(url.hostname)
    ? 'must be https: the address is not a private one'
    : undefined
}

/** False for a name: its addresses are checked when it is dialled. */
function isPublicAddress(hostname: string): boolean {
  const address = /^\[(.*)\]$/.exec(hostname)?.[1]
  const isAddress = address !== undefined || /^[\d.]+$/.test(hostname)
  return isAddress && !isPrivateAddress(address ?? hostname)
}

type Schemas<T extends Record<string, Setting>> = { readonly [K in keyof T]: T[K]['schema'] }

function schemas<T extends Record<string, Setting>>(settings: T): Schemas<T> {
  return Object.fromEntries(Object.entries(settings).map(([key, { schema }]) => [key, schema])) as Schemas<T>
}
