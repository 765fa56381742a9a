import { z } from 'zod'
import { upstreamKind, upstreamName } from './model-routes.ts'

/**
 * The API of the process `keys` for the doors: HTTP over a unix socket that only the doors can open.
 *
 * | call | body → answer |
 * |---|---|
 * | `POST /call` | a request of a model as JSON, with `CALL_HEADERS.reservation` and perhaps
 * `CALL_HEADERS.version` → the upstream's answer, as it comes |
 * | `POST /tool` | `sendTool` → `toolAnswer`; one call of a tool, whole |
 * | `GET /health` | → `keysHealth` |
 *
 * A call has `content-length` and `content-type: application/json`, and no header but these, `host` and `connection`. An
 * error of ours is `{error: {code, message}}` with the status of its code. An answer of the upstream is 200, whatever
 * the upstream said: its own status is in `CALL_HEADERS.status`. It ends with the trailer `CALL_HEADERS.end`: `whole`, or
 * the code of the error that cut it. An answer without that trailer was cut too.
 */
export const CALL_HEADERS = {
  reservation: 'airlock-reservation',
  status: 'airlock-upstream-status',
  end: 'airlock-end',
  /** Optional, for routes of Anthropic: one of `ANTHROPIC_VERSIONS`. */
  version: 'airlock-anthropic-version',
} as const

/** The life of a `keys` process, in the public directory: a new random text each time it starts. */
export const KEYS_LIFE_FILE = 'keys.life'
/** The public half of what signs reservations, in the public directory. */
export const RESERVATION_KEY_FILE = 'reservation.pub'

export const upstreamHealth = z.strictObject({
  name: upstreamName,
  kind: upstreamKind,
  /** `none` where the upstream needs no key. */
  key: z.enum(['present', 'absent', 'malformed', 'none']),
  /** Status of the latest answer. */
  lastStatus: z.int().nullable(),
  /** Error code of the latest call; null when that call had an answer. */
  lastError: z.string().nullable(),
  breaker: z.enum(['closed', 'open', 'half-open']),
  calls: z.int(),
})
export type UpstreamHealth = z.infer<typeof upstreamHealth>

/** At the doors: `GET /upstreams` answers this for the control plane, or `not_ready` when `keys` does not answer. */
export const keysHealth = z.strictObject({ upstreams: z.array(upstreamHealth) })
export type KeysHealth = z.infer<typeof keysHealth>

/** The public key to which secrets are sealed, in the public directory: 32 bytes in base64url. */
export const SEAL_KEY_FILE = 'seal.pub'

export const sendTool = z.strictObject({
  /** A signed `toolOrder`. */
  order: z.string(),
  /** The body that the order names by its hash. */
  body: z.string().nullable(),
})
export type SendTool = z.infer<typeof sendTool>

/** The answer of a service. It holds no byte of the secret that was sent. */
export const toolAnswer = z.strictObject({
  status: z.int(),
  /** By a list. */
  headers: z.record(z.string(), z.string()),
  /** Base64. */
  body: z.string(),
})
export type ToolAnswer = z.infer<typeof toolAnswer>
