import { z } from 'zod'
import { BOUNDS } from './defaults.ts'
import { AirlockError } from './errors.ts'

interface Setting {
  readonly schema: z.ZodType
  readonly about: string
}

const setting = <T extends z.ZodType>(schema: T, about: string) => ({ schema, about }) satisfies Setting
const port = z.coerce.number().int().min(0).max(65_535)

/**
 * Every setting of a server: `airlock.toml` has these keys, the environment has `AIRLOCK_` and the key in capitals,
 * and the environment wins. To add one: add a row here, pass it on in `supervisor/processes.ts`, run
 * `npm run docs:generate`.
 */
export const SETTINGS = {
  home: setting(
    z.string().startsWith('/').optional(),
    'Where state and sockets live. As root: /var/lib/airlock and /run/airlock.',
  ),
  host: setting(
    z.string().default('127.0.0.1'),
    'Address to listen on. Any other than loopback needs TLS or trusted_proxy.',
  ),
  port: setting(port.default(7070), 'Port to listen on; 0 picks a free one.'),
  advertise_url: setting(
    z.url({ protocol: /^https?$/ }).optional(),
    'Where callers reach this node, for others that share its store to say. By default where it listens.',
  ),
  tls_cert: setting(z.string().optional(), 'PEM file with the certificate chain.'),
  tls_key: setting(z.string().optional(), 'PEM file with the private key.'),
  trusted_proxy: setting(z.stringbool().or(z.boolean()).default(false), 'A proxy in front of us ends TLS.'),
  runtime: setting(z.string().default('auto'), 'OCI runtime: auto (crun, else runc), a name, or an absolute path.'),
  cgroup: setting(
    z
      .string()
      .regex(/^(?!.*\.\.)[\w.@:\\-]+(?:\/[\w.@:\\-]+)*$/u)
      .optional(),
    'cgroup v2 only: the group that was delegated for sandboxes, such as system.slice/airlock-sandboxes.service.',
  ),
  capacity: setting(
    z.coerce.number().int().min(1).max(10_000).default(BOUNDS.sandboxesPerNode),
    'Sandboxes at once on this node.',
  ),
  log_level: setting(
    z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
    'What the processes log to stderr.',
  ),
  failpoint: setting(
    z.string().optional(),
    'For tests of crashes only: <failpoint>:<process> kills that process there.',
  ),
} as const satisfies Record<string, Setting>

/** What holds a secret is read from the environment alone: a file of settings is copied around. */
export const SECRET_VARIABLES = {
  DATABASE_URL:
    'postgres://user:password@host:port/database moves the store to PostgreSQL; see postgresql.md. Without it, SQLite.',
} as const

export type SettingName = keyof typeof SETTINGS
export type Config = { readonly [K in SettingName]: z.output<(typeof SETTINGS)[K]['schema']> }

/** Variables that clients, not servers, read. */
const CLIENT_VARIABLES = new Set(['AIRLOCK_URL', 'AIRLOCK_API_KEY', 'AIRLOCK_CONFIG'])

/** Reads a parsed `airlock.toml` and an environment. Fails closed: an unknown key is an error, not a default. */
export function parseConfig(
  file: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): Config {
  const given: Record<string, unknown> = { ...file }
  for (const [key, value] of Object.entries(env))
    if (key.startsWith('AIRLOCK_') && !CLIENT_VARIABLES.has(key))
      given[key.slice('AIRLOCK_'.length).toLowerCase()] = value
  const schema = z.strictObject(Object.fromEntries(Object.entries(SETTINGS).map(([key, row]) => [key, row.schema])))
  const parsed = schema.safeParse(given)
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  return parsed.data as Config
}

/** A zod error as one sentence that names each field. */
export function describeIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, 5)
    .map((issue) => (issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message))
    .join('; ')
}
