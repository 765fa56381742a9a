import { isTypo } from '@airlock/std'
import { z } from 'zod'
import { effect } from '../nouns/decision.ts'
import { BOUNDS, DEFAULTS } from '../defaults.ts'
import { AirlockError } from '../errors.ts'
import { listedAddresses, resolversText } from './egress-settings.ts'
import { type GraphSettings, graphSettings } from './graph-settings.ts'
import { llmSettings, type LlmSettings, throwOnKeys } from './llm-settings.ts'
import { endedForText, thresholdText } from './monitor-settings.ts'

const MIB = 1024 * 1024

/** What can run the sandboxes of a node. */
export const BACKENDS = ['oci'] as const

interface Setting {
  readonly schema: z.ZodType
  readonly about: string
}

const setting = <T extends z.ZodType>(schema: T, about: string) => ({ schema, about }) satisfies Setting
const port = z.coerce.number().int().min(0).max(65_535)

/**
 * Every setting of a server but its tables: `airlock.toml` has these keys, the environment has `AIRLOCK_` and the key in
 * capitals, and the environment wins. To add one: add a row here, pass it on in `supervisor/processes.ts`, run
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
  key_requests_per_s: setting(
    z.coerce.number().int().min(1).max(1_000_000).default(2_000),
    'Requests a second of one key in the long run, five times as many at once. More wait for up to 2 s, then are too_many_requests. Requests that only take power away are not counted.',
  ),
  tenant_requests_per_s: setting(
    z.coerce.number().int().min(1).max(1_000_000).default(4_000),
    'The same of all keys of a tenant together.',
  ),
  backend: setting(
    z.enum(BACKENDS).default('oci'),
    'What runs the sandboxes: oci, a runtime on this host without a daemon.',
  ),
  runtime: setting(z.string().default('auto'), 'OCI runtime: auto (crun, else runc), a name, or an absolute path.'),
  runsc: setting(
    z.string().default('auto'),
    'gVisor, for the strict tier: auto (runsc, where it is installed), none, or an absolute path.',
  ),
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
  oversubscribe_memory: setting(
    z.coerce.number().min(0.1).max(100).default(2),
    'How many times its memory the node promises to sandboxes: few use all that they may.',
  ),
  oversubscribe_cpus: setting(z.coerce.number().min(0.1).max(1000).default(25), 'The same of its processors.'),
  oversubscribe_disk: setting(
    z.coerce.number().min(0.1).max(100).default(1),
    'The same of its disk. Up to 1 every disk is set aside when it is made; beyond that a full host has no reserve, and writes inside that are not synced can be lost. See budgets.md.',
  ),
  disk_reserve_mb: setting(
    z.coerce
      .number()
      .int()
      .min(0)
      .max(64 * 1024 * 1024)
      .optional(),
    'What stays free on the disk of the host for evidence, the store and the system, in MiB. By default 5 percent, at least 1 GiB and at most 10 GiB.',
  ),
  vault_retention_hours: setting(
    z.coerce
      .number()
      .min(0)
      .max(365 * 24)
      .default(24),
    'How long the whole output of a command is kept that said more than its cap, in hours.',
  ),
  vault_max_mb: setting(
    z.coerce
      .number()
      .int()
      .min(0)
      .max(64 * 1024 * 1024)
      .default(1024),
    'How much of that is kept on this node, in MiB; beyond it the oldest of the tenant that has the most goes. 0 keeps none.',
  ),
  artifact_max_mb: setting(
    z.coerce
      .number()
      .int()
      .min(1)
      .max(64 * 1024)
      .default(1024),
    'The largest artifact, in MiB.',
  ),
  artifact_quota_mb: setting(
    z.coerce
      .number()
      .int()
      .min(0)
      .max(64 * 1024 * 1024)
      .default(4096),
    'What the artifacts of one tenant have together, in MiB, on all nodes. 0 keeps none.',
  ),
  artifact_quota_count: setting(
    z.coerce.number().int().min(0).max(1_000_000).default(10_000),
    'How many artifacts one tenant has, on all nodes.',
  ),
  agent_sandboxes: setting(
    z.coerce.number().int().min(0).max(DEFAULTS.agentSandboxes.max).default(DEFAULTS.agentSandboxes.default),
    'Sandboxes at once of an agent whose budget says nothing else; a tenant has ten times as many. See budgets.md.',
  ),
  agent_memory_mb: setting(
    z.coerce
      .number()
      .int()
      .min(0)
      .max(DEFAULTS.agentMemoryBytes.max / MIB)
      .default(DEFAULTS.agentMemoryBytes.default / MIB),
    'Their memory together, in MiB.',
  ),
  agent_disk_mb: setting(
    z.coerce
      .number()
      .int()
      .min(0)
      .max(DEFAULTS.agentDiskBytes.max / MIB)
      .default(DEFAULTS.agentDiskBytes.default / MIB),
    'Their disks together, in MiB.',
  ),
  agent_cpus: setting(
    z.coerce.number().min(0).max(DEFAULTS.agentCpus.max).default(DEFAULTS.agentCpus.default),
    'Their processors together.',
  ),
  agent_stale_s: setting(
    z.coerce
      .number()
      .int()
      .min(1)
      .max(30 * 24 * 3600)
      .default(3600),
    'Seconds without a sign of life after which the sandboxes of an agent end.',
  ),
  agent_version_approval: setting(
    z.stringbool().or(z.boolean()).default(false),
    'An agent whose version changes has to be approved again, and its sandboxes end until it is.',
  ),
  jwt_issuer: setting(z.string().min(1).optional(), 'Accept tokens of this issuer (`iss`); see identity.md.'),
  jwt_audience: setting(z.string().min(1).optional(), 'Whom they must be meant for (`aud`).'),
  jwks_url: setting(
    z.url({ protocol: /^https?$/ }).optional(),
    'Where the issuer publishes its keys; https, or http on loopback.',
  ),
  jwks_file: setting(z.string().optional(), 'The keys of the issuer as a file (JWKS), read at the start.'),
  jwt_tenant_claim: setting(z.string().min(1).default('tenant'), 'The claim that names the tenant.'),
  jwt_role_claim: setting(z.string().min(1).default('role'), 'The claim that names the role.'),
  jwt_agents_claim: setting(z.string().min(1).default('agents'), 'The claim that names agents to be bound to.'),
  jwt_clock_tolerance_s: setting(
    z.coerce.number().int().min(0).max(300).default(30),
    'How far the clock of the issuer may be off, in seconds.',
  ),
  webhook_private: setting(
    z.stringbool().or(z.boolean()).default(false),
    'Webhooks may be at private, loopback and link-local addresses, and need no TLS; see approvals.md.',
  ),
  audit_retention_days: setting(
    z.coerce.number().min(1).max(36_500).default(30),
    'How long evidence is kept, in days; older segments are dropped, and what is left still verifies. See events.md.',
  ),
  audit_max_mb: setting(
    z.coerce
      .number()
      .int()
      .min(32)
      .max(64 * 1024 * 1024)
      .default(1024),
    'How much evidence is kept on this node, in MiB; beyond it the largest chain loses its oldest segment.',
  ),
  audit_min_age_hours: setting(
    z.coerce
      .number()
      .min(0)
      .max(24 * 365)
      .default(24),
    'Evidence younger than this is never dropped for its size, in hours: audit_max_mb must hold as much. Who fills it sooner is refused.',
  ),
  policy_default: setting(
    effect.default('allow'),
    'What Guardian says where no rule matches: allow, ask or deny; see guardian.md.',
  ),
  opa_url: setting(
    z.url({ protocol: /^https?$/ }).optional(),
    'Ask an Open Policy Agent too, such as http://127.0.0.1:8181; `OPA_URL` is the same. See guardian.md.',
  ),
  opa_path: setting(
    z
      .string()
      .regex(/^[\w./-]+$/)
      .default('v1/data/airlock/decision'),
    'Which of its documents is the decision.',
  ),
  opa_timeout_ms: setting(
    z.coerce.number().int().min(10).max(30_000).default(500),
    'What it has not answered by then is denied.',
  ),
  monitor_every_s: setting(
    z.coerce.number().int().min(1).max(60).default(5),
    'How often the monitor looks at all sandboxes, in seconds; see monitor.md.',
  ),
  monitor_cpu: setting(
    thresholdText.default('70/90'),
    'From where on the use of processors is a warning, and critical, in percent of the limit; or off. See monitor.md.',
  ),
  monitor_memory: setting(thresholdText.default('80/95'), 'The same of memory.'),
  monitor_disk: setting(thresholdText.default('80/95'), 'The same of the disk, its bytes and its inodes.'),
  monitor_pids: setting(thresholdText.default('80/95'), 'The same of processes.'),
  monitor_sustained: setting(
    z.coerce.number().int().min(1).max(100).default(3),
    'How many samples in a row raise or clear an alert.',
  ),
  monitor_kill: setting(
    endedForText.default('pids,oom,disk,cpu'),
    'What ends a sandbox: processes at their limit, memory that ran out again and again, a disk or processor time beyond its limit; or none.',
  ),
  egress_resolvers: setting(
    resolversText.default([]),
    'DNS servers that the egress door asks, as ip:port, with commas; by default those of the host. See egress.md.',
  ),
  egress_allow_private: setting(
    listedAddresses.default([]),
    'Addresses that are not public and that sandboxes may be connected to where rules allow the host, each as address:port.',
  ),
  egress_mbit: setting(
    z.coerce.number().min(0.1).max(100_000).default(100),
    'Bandwidth of one sandbox to hosts and back, in Mbit/s.',
  ),
  egress_connections: setting(
    z.coerce.number().int().min(1).max(512).default(128),
    'Connections of one sandbox to hosts at once; more is too_many_requests.',
  ),
  egress_connection_mb: setting(
    z.coerce
      .number()
      .int()
      .min(1)
      .max(1024 * 1024)
      .default(16 * 1024),
    'Bytes that one connection may carry, in MiB.',
  ),
  egress_idle_s: setting(
    z.coerce.number().int().min(1).max(86_400).default(600),
    'Seconds without a byte after which a connection is cut.',
  ),
  egress_connection_s: setting(
    z.coerce.number().int().min(1).max(604_800).default(21_600),
    'Seconds after which a connection is cut.',
  ),
  log_level: setting(
    z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
    'What the processes log to stderr.',
  ),
  failpoint: setting(
    z.string().optional(),
    'For tests of crashes only: <failpoint>:<process> kills that process there; @<file> reads that from a file, again and again.',
  ),
} as const satisfies Record<string, Setting>

/** What holds a secret is read from the environment alone: a file of settings is copied around. */
export const SECRET_VARIABLES = {
  AIRLOCK_JWT_SECRET:
    'At least 32 characters: accept tokens that are signed with it (HS256), for small set-ups; see identity.md.',
  DATABASE_URL:
    'postgres://user:password@host:port/database moves the store to PostgreSQL; see postgresql.md. Without it, SQLite.',
} as const

export type SettingName = keyof typeof SETTINGS
export type Config = { readonly [K in SettingName]: z.output<(typeof SETTINGS)[K]['schema']> } & {
  readonly llm: LlmSettings
  readonly graph: GraphSettings
}

/** Variables that others named. */
const FOREIGN_VARIABLES = { OPA_URL: 'opa_url' } as const satisfies Record<string, SettingName>

/** Variables that clients, not servers, read. */
const CLIENT_VARIABLES = new Set(['AIRLOCK_URL', 'AIRLOCK_API_KEY', 'AIRLOCK_CONFIG'])

/** Reads a parsed `airlock.toml` and an environment. Fails closed: an unknown key is an error, not a default. */
export function parseConfig(
  file: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): Config {
  const { llm, graph, ...given }: Record<string, unknown> = { ...file }
  throwOnKeys(llm)
  for (const [key, setting] of Object.entries(FOREIGN_VARIABLES)) if (env[key] !== undefined) given[setting] = env[key]
  for (const [key, value] of Object.entries(env))
    if (key.startsWith('AIRLOCK_') && !CLIENT_VARIABLES.has(key) && !Object.hasOwn(SECRET_VARIABLES, key))
      given[key.slice('AIRLOCK_'.length).toLowerCase()] = value
  const schema = z.strictObject(Object.fromEntries(Object.entries(SETTINGS).map(([key, row]) => [key, row.schema])))
  throwOnUnknown(Object.keys(given), env)
  const parsed = schema.safeParse(given)
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  return { ...(parsed.data as Omit<Config, 'llm' | 'graph'>), ...parseTables({ llm, graph }) }
}

function parseTables(given: { readonly llm: unknown; readonly graph: unknown }): Pick<Config, 'llm' | 'graph'> {
  const parsed = z.object({ llm: llmSettings, graph: graphSettings }).safeParse(given)
  if (!parsed.success) throw new AirlockError('config_invalid', describeIssues(parsed.error))
  return parsed.data
}

/** By the name under which it was given, a variable or a line of the file. */
function throwOnUnknown(given: readonly string[], env: Readonly<Record<string, string | undefined>>): void {
  const settings = Object.keys(SETTINGS)
  const unknown = given.find((key) => !settings.includes(key))
  if (unknown === undefined) return
  const variable = (key: string): string => `AIRLOCK_${key.toUpperCase()}`
  const isVariable = Object.keys(env).some((key) => key.toUpperCase() === variable(unknown))
  const named = (key: string): string => (isVariable ? variable(key) : key)
  const meant = settings.find((key) => isTypo(unknown, key))
  throw new AirlockError('config_invalid', `${named(unknown)} is no setting.`, {
    hint: meant === undefined ? 'All of them: docs/configuration.md' : `Did you mean ${named(meant)}?`,
  })
}

/** A zod error as one sentence that names each field. */
export function describeIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, 5)
    .map((issue) => (issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message))
    .join('; ')
}
