import { z } from 'zod'
import { sandboxId } from '../nouns/scalars.ts'

const count = z.int().min(0)
const requestId = z.string().regex(/^req_[0-9a-z]+$/)

/** What the doors ask before a name is resolved: may this sandbox connect to that host. */
export const openNetworkCall = z.strictObject({
  sandbox: sandboxId,
  requestId,
  /** A name in lower case, or an address in its usual spelling. */
  host: z.string().min(1).max(253),
  port: z.int().min(1).max(65_535),
  /** `tls`: by CONNECT. `http`: one request in plain HTTP. */
  traffic: z.enum(['tls', 'http']),
  /** Of a request in plain HTTP. */
  method: z.string().max(32).nullable(),
})
export type OpenNetworkCall = z.infer<typeof openNetworkCall>

/** It may be connected to once. */
export const openedNetworkCall = z.strictObject({
  connection: z.string().max(64),
  /** Bytes that are not TLS may pass, too. */
  raw: z.boolean(),
})
export type OpenedNetworkCall = z.infer<typeof openedNetworkCall>

/** How a connection ended. */
export const closeNetworkCall = z.strictObject({
  sandbox: sandboxId,
  connection: z.string().max(64),
  /** Where it was connected to; null when it was not. */
  address: z.string().max(64).nullable(),
  /** Bytes, from the sandbox and to it. */
  sent: count,
  received: count,
  /** Why it was cut, or the registry code of what went wrong; null when both sides ended it. */
  reason: z.string().max(64).nullable(),
  /** What went wrong, as the program inside was told. */
  message: z.string().max(512).nullable(),
})
export type CloseNetworkCall = z.infer<typeof closeNetworkCall>
