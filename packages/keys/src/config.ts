import { AirlockError, describeIssues, modelName, upstreamKind, upstreamName } from '@airlock/contract'
import { z } from 'zod'

const absolute = z.string().startsWith('/')
const ms = z.int().min(1)

const upstream = z.strictObject({
  kind: upstreamKind,
  origin: z.url({ protocol: /^https?$/ }),
  /** Path of the base URL, without a slash at its end. */
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
  /** Holds the public key of reservations; our life is written there. */
  publicDir: absolute,
  /** The socket for the doors. */
  socket: absolute,
  /** The uid that may open it beside root. */
  socketUid: z.int().nullable(),
  /** The private key that opens secrets; made at the first start. */
  sealKeyFile: absolute,
  /** Addresses that are not public and may be dialled for tools all the same. */
  listed: z.array(z.strictObject({ address: z.string(), port: z.int() })),
  upstreams: z.record(upstreamName, upstream),
  /** The user to become once the socket is there; null keeps the present one. */
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
