import { isIP } from 'node:net'
import {
  AirlockError,
  budgetLimits,
  describeIssues,
  effect,
  endedFor,
  graphSpec,
  servedModel,
  threshold,
} from '@airlock/contract'
import { z } from 'zod'

const absolute = z.string().startsWith('/')

const rate = z.strictObject({ burst: z.int().min(1), perSecond: z.int().min(1) })

const processConfig = z.strictObject({
  stateDir: absolute,
  publicDir: absolute,
  /** Where the two key files go. */
  keysDir: absolute,
  dataPlaneSocket: absolute,
  doorsSocket: absolute,
  /** Where we hear the doors, and who they are. */
  fromDoors: z.strictObject({ path: absolute, uid: z.int() }),
  recorderSocket: absolute,
  spillDir: absolute,
  /** PostgreSQL, with its password; null keeps the store in a file. */
  databaseUrl: z.string().nullable(),
  /** Who may sign tokens, with its secret if it has one; null when nobody may. */
  jwt: z
    .strictObject({
      issuer: z.string().min(1),
      audience: z.string().min(1),
      jwksUrl: z.url().nullable(),
      jwksFile: absolute.nullable(),
      secret: z.string().min(32).nullable(),
      tenantClaim: z.string().min(1),
      roleClaim: z.string().min(1),
      agentsClaim: z.string().min(1),
      clockToleranceS: z.int().min(0),
    })
    .nullable(),
  host: z.string().min(1),
  port: z.int().min(0).max(65_535),
  /** Where callers reach this node; null when that is where it listens. */
  advertiseUrl: z.string().nullable(),
  tlsCert: z.string().nullable(),
  tlsKey: z.string().nullable(),
  trustedProxy: z.boolean(),
  /** Where the files of the page are. */
  pageDir: absolute,
  /** Make a link that signs in once with the admin key of this machine. */
  makesSignInLink: z.boolean(),
  /** How often a key, and all keys of a tenant, may ask. */
  requestRates: z.strictObject({ perKey: rate, perTenant: rate }),
  /** What Guardian says where no rule matches. */
  policyDefault: effect,
  /** Where decisions are asked for beside the policies; null when nowhere. */
  opa: z.strictObject({ url: z.url(), path: z.string().min(1), timeoutMs: z.int().min(1) }).nullable(),
  /** What one artifact, and all of one tenant, may have. */
  artifacts: z.strictObject({ maxBytes: z.int().min(1), quotaBytes: z.int().min(0), quotaCount: z.int().min(0) }),
  /** Webhooks may be at addresses that are not public. */
  webhookPrivate: z.boolean(),
  /** How often all sandboxes are looked at. */
  monitorEveryMs: z.int().min(1),
  /** From where on what sandboxes use is worth an alert, and what ends them; null is off. */
  alerts: z.strictObject({
    thresholds: z.strictObject({
      cpu: threshold.nullable(),
      memory: threshold.nullable(),
      disk: threshold.nullable(),
      pids: threshold.nullable(),
    }),
    sustained: z.int().min(1),
    endedFor: z.array(endedFor),
  }),
  capacity: z.int().min(1),
  oversubscription: z.strictObject({
    memory: z.number().positive(),
    disk: z.number().positive(),
    cpus: z.number().positive(),
  }),
  budgetDefaults: budgetLimits,
  /** Of configured upstreams, by the names that callers use. */
  models: z.array(servedModel),
  /** Agent programs of the configuration, by the name after `sandbox:`. */
  graphs: z.record(z.string(), graphSpec),
  agentStaleMs: z.int().min(1),
  approvesVersions: z.boolean(),
  /** Who to become once everything is open; null keeps who we are. */
  drop: z.strictObject({ uid: z.int().min(1), gid: z.int().min(1) }).nullable(),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  failpoint: z.string().nullable(),
})
export type ProcessConfig = z.infer<typeof processConfig>

/** What the supervisor gave this process. Fails closed: unknown keys and an address open to others are errors. */
export function readConfig(env: Readonly<Record<string, string | undefined>> = process.env): ProcessConfig {
  const parsed = processConfig.safeParse(parseJson(env['AIRLOCK_PROCESS']))
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  const config = parsed.data
  if ((config.tlsCert === null) !== (config.tlsKey === null))
    throw new AirlockError('config_invalid', 'tls_cert and tls_key belong together.')
  if (!isLoopback(config.host) && config.tlsCert === null && !config.trustedProxy)
    throw new AirlockError(
      'config_invalid',
      `Listening on ${config.host} needs tls_cert and tls_key, or trusted_proxy.`,
    )
  return config
}

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    throw new AirlockError('config_invalid', 'AIRLOCK_PROCESS is not JSON: start it with "airlock serve".')
  }
}

/** A name may resolve to anything, so only `localhost` counts. */
function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}
