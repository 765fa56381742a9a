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
  /** Where upstreams are dialled. Null where none is configured. */
  keysSocket: absolute.nullable(),
  /** The program of the threads that read large bodies. */
  prepareProgram: absolute,
  /** Who to become once our own socket is there; null keeps who we are. */
  drop: z.strictObject({ uid: z.int().min(1), gid: z.int().min(1) }).nullable(),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  failpoint: z.string().nullable(),
})
export type DoorsConfig = z.infer<typeof doorsConfig>

export function readConfig(): DoorsConfig {
  const parsed = doorsConfig.safeParse(JSON.parse(process.env['AIRLOCK_PROCESS'] ?? '{}'))
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  return parsed.data
}
