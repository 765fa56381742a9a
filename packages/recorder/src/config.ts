import { AirlockError } from '@airlock/contract'
import { z } from 'zod'

const recorderConfig = z.strictObject({
  /** Keys and chains. The recorder's own. */
  stateDir: z.string().startsWith('/'),
  publicDir: z.string().startsWith('/'),
  /** Which socket a record came by is which process sent it. `uid` may connect. */
  sockets: z.array(
    z.strictObject({
      path: z.string().startsWith('/'),
      process: z.enum(['control-plane', 'data-plane']),
      uid: z.int().nullable(),
    }),
  ),
  retention: z.strictObject({
    days: z.number().positive(),
    maxBytes: z.int().positive(),
    minAgeHours: z.number().min(0),
  }),
  drop: z.strictObject({ uid: z.int().min(1), gid: z.int().min(1) }).nullable(),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  failpoint: z.string().nullable(),
})
export type RecorderConfig = z.infer<typeof recorderConfig>

export function readConfig(): RecorderConfig {
  try {
    return recorderConfig.parse(JSON.parse(process.env['AIRLOCK_PROCESS'] ?? ''))
  } catch (cause) {
    throw new AirlockError('config_invalid', 'AIRLOCK_PROCESS is not a configuration of the recorder.', { cause })
  }
}
