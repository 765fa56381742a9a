import { AirlockError, describeIssues } from '@airlock/contract'
import { z } from 'zod'

const absolute = z.string().startsWith('/')

const doorsConfig = z.strictObject({
  /** A directory per sandbox, made by the data plane, and in it one of ours for each of its doors. */
  doorsDir: absolute,
  /** Where the control plane tells us which doors are open. */
  socket: absolute,
  /** Who may open that besides root. */
  socketUid: z.int().nullable(),
  /** Where the control plane hears what came in. */
  controlPlaneSocket: absolute,
  /** What the operator allows every sandbox that has the door `egress`. */
  egress: z.strictObject({
    /** DNS servers as `ip:port`; empty takes those of the host. */
    resolvers: z.array(z.string()),
    /** Addresses that are not public and may be connected to all the same. */
    listed: z.array(z.strictObject({ address: z.string(), port: z.int() })),
    bitsPerSecond: z.number().positive(),
    /** Of one sandbox at once. */
    connections: z.int().min(1),
    /** Of one connection. */
    bytes: z.int().min(1),
    idleMs: z.int().min(1),
    totalMs: z.int().min(1),
  }),
  /** Where upstreams are dialled. Null where none is configured. */
  keysSocket: absolute.nullable(),
  /** The program of the threads that read large bodies. */
  prepareProgram: absolute,
  /** Who to become once our own socket is there; null keeps who we are. */
  drop: z.strictObject({ uid: z.int().min(1), gid: z.int().min(1) }).nullable(),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  failpoint: z.string().nullable(),
})
export type EgressSettings = DoorsConfig['egress']
export type DoorsConfig = z.infer<typeof doorsConfig>

export function readConfig(): DoorsConfig {
  const parsed = doorsConfig.safeParse(JSON.parse(process.env['AIRLOCK_PROCESS'] ?? '{}'))
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  return parsed.data
}
