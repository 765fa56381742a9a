import { AirlockError, describeIssues, modelName, upstreamKind, upstreamName } from '@airlock/contract'
import { z } from 'zod'

const absolute = z.string().startsWith('/')
const ms = z.int().min(1)

const upstream = z.strictObject({
  kind: upstreamKind,
  origin: z.url({ protocol: /^https?$/ }),
  /** Of the base URL, without a slash at its end. */
  path: z.string().regex(/^(?:\/.*[^/])?$/),
  /** A copy for us alone, which the supervisor replaces when the key changes; null for an upstream without a key. */
  keyFile: absolute.nullable(),
  /** The upstream's names of its models. */
  models: z.array(modelName),
  connectMs: ms,
  firstByteMs: ms,
  readMs: ms,
  maxConcurrent: z.int().min(1),
})

const keysConfig = z.strictObject({
  /** Where the public half of what signs reservations is, and where our life is told. */
  publicDir: absolute,
  /** Where the doors ask. */
  socket: absolute,
  /** Who may open that besides root. */
  socketUid: z.int().nullable(),
  upstreams: z.record(upstreamName, upstream),
  /** Who to become once our socket is there; null keeps who we are. */
  drop: z.strictObject({ uid: z.int().min(1), gid: z.int().min(1) }).nullable(),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  failpoint: z.string().nullable(),
})
export type KeysConfig = z.infer<typeof keysConfig>

export function readConfig(): KeysConfig {
  const parsed = keysConfig.safeParse(JSON.parse(process.env['AIRLOCK_PROCESS'] ?? '{}'))
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  return parsed.data
}
