import { AirlockError, BACKENDS, describeIssues } from '@airlock/contract'
import { z } from 'zod'

const dataPlaneConfig = z.strictObject({
  stateDir: z.string(),
  publicDir: z.string(),
  runtimeDir: z.string(),
  socket: z.string(),
  /** Who may open the socket besides root. */
  socketUid: z.int().nullable(),
  recorderSocket: z.string(),
  spillDir: z.string(),
  /** Who serves the doors of sandboxes. */
  doorsUid: z.int().nullable(),
  backend: z.enum(BACKENDS),
  runtime: z.string(),
  /** gVisor, for the strict tier. */
  runsc: z.string(),
  /** The group of version 2 that was delegated for sandboxes. */
  cgroup: z.string().nullable(),
  capacity: z.int(),
  /** What stays free on the disk of the host; null is a share of it. */
  diskReserveBytes: z.int().min(0).nullable(),
  /** Whether the blocks of disks are set aside when they are made. */
  allocatesDisks: z.boolean(),
  /** How long outputs are kept that were too much, and how much of them. */
  vaultRetentionMs: z.int().min(0),
  vaultBytes: z.int().min(0),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  failpoint: z.string().nullable(),
})
export type DataPlaneConfig = z.infer<typeof dataPlaneConfig>

export function readConfig(): DataPlaneConfig {
  const parsed = dataPlaneConfig.safeParse(JSON.parse(process.env['AIRLOCK_PROCESS'] ?? '{}'))
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  return parsed.data
}
