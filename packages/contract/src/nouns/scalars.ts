import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { pathBytes } from '../guest/byte-path.ts'

/** Lower-case, as DNS labels: safe in paths, headers and logs. */
export const id = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/, 'must be lower-case letters, digits, - or _')
export const name = z
  .string()
  .max(BOUNDS.nameLength)
  .regex(/^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/, 'must be lower-case letters, digits, ".", "-" or "_"')
export const agentId = id
export const sandboxId = z.string().regex(/^sbx_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a sandbox id')
export const commandId = z.string().regex(/^cmd_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a command id')
export const sessionId = z.string().regex(/^ses_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a session id')
export const stepId = z.string().regex(/^stp_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a step id')
export const jobId = z.string().regex(/^job_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a job id')
export const artifactId = z.string().regex(/^art_[0-9a-hjkmnp-tv-z]{26}$/, 'is not an artifact id')
export const runId = z.string().regex(/^run_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a run id')
/** A caller's own id of a step. */
export const stepKey = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, 'must be letters, digits, ".", ":", "-" or "_"')
export const time = z.iso.datetime()

/** PostgreSQL has no NUL in texts, and nobody needs one. */
export const plainText = z.string().refine((text) => !text.includes('\0'), 'must not contain NUL')

export const labels = z
  .record(z.string().regex(/^[a-z0-9][a-z0-9._/-]{0,62}$/), plainText.max(BOUNDS.labelLength))
  .refine((map) => Object.keys(map).length <= BOUNDS.labels, `at most ${BOUNDS.labels} labels`)

export const envVars = z
  .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), plainText)
  .refine((map) => Object.keys(map).length <= BOUNDS.env, `at most ${BOUNDS.env} variables`)
  .refine((map) => JSON.stringify(map).length <= BOUNDS.envBytes, `at most ${BOUNDS.envBytes} bytes`)

/**
 * A path inside a sandbox: absolute, or relative to /workspace. Resolved inside, never on the host. What is not UTF-8 is named
 * by a `file://` URL, as lists of files do.
 */
export const sandboxPath = z
  .string()
  .min(1)
  .refine((path) => Buffer.byteLength(path) <= BOUNDS.pathBytes, `at most ${BOUNDS.pathBytes} bytes`)
  .refine((path) => !path.includes('\0'), 'must not contain NUL')
  .refine((path) => !path.split('/').includes('..'), { error: 'must not contain ".."', abort: true })
  .refine((path) => pathBytes(path) !== undefined, 'a file:// URL is for what is not UTF-8, absolute and without ".."')

export function within(bound: { readonly min: number; readonly max: number }): z.ZodNumber {
  return z.number().min(bound.min).max(bound.max)
}
