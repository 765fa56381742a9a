import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Config, DEFAULTS, parseEndedFor, parseThreshold, type ServedModel } from '@airlock/contract'
import type { Settings } from './config.ts'
import { CONTROL_PLANE_UID, DOORS_UID, KEYS_UID, RECORDER_UID } from './directories.ts'
import { keyCopyPath } from './key-copies.ts'

const BURST_S = 5
const MIB = 1024 * 1024
const DAY_S = 24 * 3600

/**
 * glibc returns freed blocks of bodies to the host. By default the first threshold grows to 32 MiB with use. A lower one makes
 * each read of a socket map and unmap its 64 KiB, which halves the requests per second.
 */
const RETURNS_MEMORY = { MALLOC_MMAP_THRESHOLD_: String(128 * 1024), MALLOC_TRIM_THRESHOLD_: String(128 * 1024) }

/** One process under supervision. */
export interface ProcessSpec {
  readonly name: string
  readonly main: string
  /** What it reads as `AIRLOCK_PROCESS`. */
  readonly settings: Readonly<Record<string, unknown>> & { readonly failpoint: string | null }
  /** Beside what every process gets. */
  readonly environment?: Readonly<Record<string, string>>
  /** How long it may take to stop before it is killed. */
  readonly stopMs: number
  /** `none` for a process with secrets in its memory. The limit of the host when absent. */
  readonly core?: 'none'
}

/** Everything inside of a stage starts together; the next stage starts when all of it is ready. Stopping goes backwards. */
export type Stages = readonly (readonly ProcessSpec[])[]

/** `airlock serve` as a table: evidence first, for nothing is granted without it. */
export function processTable(settings: Settings, of: { readonly isTerminal: boolean } = { isTerminal: false }): Stages {
  const { config } = settings
  const common = { logLevel: config.log_level, failpoint: config.failpoint ?? null }
  return [
    [
      {
        name: 'recorder',
        main: mainOf('recorder'),
        settings: { ...recorder(settings, config), ...common },
        stopMs: 35_000,
      },
      {
        name: 'keys',
        main: mainOf('keys'),
        settings: { ...keys(settings), ...common },
        stopMs: 10_000,
        core: 'none',
      },
    ],
    [
      {
        name: 'data-plane',
        main: mainOf('data-plane'),
        settings: { ...dataPlane(settings, config), ...common },
        stopMs: 35_000,
      },
      { name: 'doors', main: mainOf('doors'), settings: { ...doors(settings), ...common }, stopMs: 10_000 },
      {
        name: 'control-plane',
        main: mainOf('control-plane'),
        settings: { ...controlPlane(settings, config), ...common, makesSignInLink: of.isTerminal },
        environment: RETURNS_MEMORY,
        stopMs: 60_000,
      },
    ],
  ]
}

function recorder({ stateDir, runtimeDir }: Settings, config: Config) {
  return {
    stateDir: join(stateDir, 'recorder'),
    publicDir: join(stateDir, 'public'),
    sockets: [
      { path: recorderSocket(runtimeDir, 'control-plane'), process: 'control-plane', uid: CONTROL_PLANE_UID },
      { path: recorderSocket(runtimeDir, 'data-plane'), process: 'data-plane', uid: null },
    ],
    retention: {
      days: config.audit_retention_days,
      maxBytes: config.audit_max_mb * MIB,
      minAgeHours: config.audit_min_age_hours,
    },
    drop: { uid: RECORDER_UID, gid: RECORDER_UID },
  }
}

function keys({ stateDir, runtimeDir, config }: Settings) {
  const upstreams = Object.entries(config.llm.upstream).map(([name, settings]) => [
    name,
    {
      kind: settings.kind,
      ...settings.base_url,
      keyFile: settings.key_file === undefined ? null : keyCopyPath(runtimeDir, name),
      models: Object.entries(settings.models).map(([served, { upstream_name: own }]) => own ?? served),
      connectMs: milliseconds(settings.connect_timeout_s),
      firstByteMs: milliseconds(settings.first_byte_timeout_s),
      readMs: milliseconds(settings.read_timeout_s),
      maxConcurrent: settings.max_concurrent,
    },
  ])
  return {
    publicDir: join(stateDir, 'public'),
    socket: keysSocket(runtimeDir),
    socketUid: DOORS_UID,
    sealKeyFile: join(stateDir, 'keys', 'seal.key'),
    listed: config.egress_allow_private,
    upstreams: Object.fromEntries(upstreams),
    drop: { uid: KEYS_UID, gid: KEYS_UID },
  }
}

/** What callers may name, in the words of the control plane; the keys are not among it. */
function models({ llm }: Config): ServedModel[] {
  return Object.entries(llm.upstream).flatMap(([name, { kind, models: served, aliases }]) =>
    Object.entries(served).map(([model, { upstream_name: own, context_window, max_output, price }]) => ({
      name: model,
      aliases: Object.keys(aliases).filter((alias) => aliases[alias] === model),
      upstream: { name, kind, model: own ?? model },
      contextWindow: context_window,
      maxOutput: max_output,
      price,
    })),
  )
}

function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000)
}

function doors({ runtimeDir, config }: Settings) {
  return {
    doorsDir: join(runtimeDir, 'doors'),
    socket: join(runtimeDir, 'doors.sock'),
    socketUid: CONTROL_PLANE_UID,
    controlPlaneSocket: join(runtimeDir, 'control-plane-doors.sock'),
    egress: {
      resolvers: config.egress_resolvers,
      listed: config.egress_allow_private,
      bitsPerSecond: config.egress_mbit * 1_000_000,
      connections: config.egress_connections,
      bytes: config.egress_connection_mb * MIB,
      idleMs: config.egress_idle_s * 1000,
      totalMs: config.egress_connection_s * 1000,
    },
    prepareProgram: programOf('doors', 'prepare'),
    keysSocket: keysSocket(runtimeDir),
    drop: { uid: DOORS_UID, gid: DOORS_UID },
  }
}

function dataPlane({ stateDir, runtimeDir }: Settings, config: Config) {
  return {
    stateDir: join(stateDir, 'data-plane'),
    publicDir: join(stateDir, 'public'),
    runtimeDir,
    socket: join(runtimeDir, 'data-plane.sock'),
    socketUid: CONTROL_PLANE_UID,
    recorderSocket: recorderSocket(runtimeDir, 'data-plane'),
    spillDir: join(runtimeDir, 'spill', 'data-plane'),
    doorsUid: DOORS_UID,
    backend: config.backend,
    runtime: config.runtime,
    runsc: config.runsc,
    cgroup: config.cgroup ?? null,
    capacity: config.capacity,
    diskReserveBytes: config.disk_reserve_mb === undefined ? null : config.disk_reserve_mb * MIB,
    allocatesDisks: config.oversubscribe_disk <= 1,
    vaultRetentionMs: Math.round(config.vault_retention_hours * 3_600_000),
    vaultBytes: config.vault_max_mb * MIB,
  }
}

function controlPlane({ stateDir, runtimeDir, databaseUrl, jwt }: Settings, config: Config) {
  return {
    pageDir: fileURLToPath(new URL('../../../dist/dashboard', import.meta.url)),
    stateDir: join(stateDir, 'control-plane'),
    publicDir: join(stateDir, 'public'),
    keysDir: stateDir,
    dataPlaneSocket: join(runtimeDir, 'data-plane.sock'),
    doorsSocket: join(runtimeDir, 'doors.sock'),
    fromDoors: { path: join(runtimeDir, 'control-plane-doors.sock'), uid: DOORS_UID },
    recorderSocket: recorderSocket(runtimeDir, 'control-plane'),
    spillDir: join(runtimeDir, 'spill', 'control-plane'),
    databaseUrl,
    jwt,
    agentStaleMs: config.agent_stale_s * 1000,
    approvesVersions: config.agent_version_approval,
    host: config.host,
    port: config.port,
    advertiseUrl: config.advertise_url ?? null,
    tlsCert: config.tls_cert ?? null,
    tlsKey: config.tls_key ?? null,
    trustedProxy: config.trusted_proxy,
    requestRates: { perKey: rateOf(config.key_requests_per_s), perTenant: rateOf(config.tenant_requests_per_s) },
    policyDefault: config.policy_default,
    opa: opaOf(config),
    artifacts: {
      maxBytes: config.artifact_max_mb * MIB,
      quotaBytes: config.artifact_quota_mb * MIB,
      quotaCount: config.artifact_quota_count,
    },
    webhookPrivate: config.webhook_private,
    monitorEveryMs: config.monitor_every_s * 1000,
    alerts: alertsOf(config),
    capacity: config.capacity,
    oversubscription: {
      memory: config.oversubscribe_memory,
      disk: config.oversubscribe_disk,
      cpus: config.oversubscribe_cpus,
    },
    models: models(config),
    graphs: config.graph,
    budgetDefaults: {
      sandboxes: config.agent_sandboxes,
      memoryBytes: config.agent_memory_mb * MIB,
      diskBytes: config.agent_disk_mb * MIB,
      cpus: config.agent_cpus,
      // As much as they can do in a day.
      computeSecondsPerDay: Math.ceil(config.agent_cpus * DAY_S),
      dollarsPerDay: DEFAULTS.agentDollarsPerDay.default,
      modelCallsPerDay: DEFAULTS.agentModelCallsPerDay.default,
      modelTokensPerDay: DEFAULTS.agentModelTokensPerDay.default,
    },
    drop: { uid: CONTROL_PLANE_UID, gid: CONTROL_PLANE_UID },
  }
}

/** What was not used for some seconds may be used at once. */
function rateOf(perSecond: number) {
  return { perSecond, burst: BURST_S * perSecond }
}

function alertsOf(config: Config) {
  return {
    thresholds: {
      cpu: parseThreshold(config.monitor_cpu),
      memory: parseThreshold(config.monitor_memory),
      disk: parseThreshold(config.monitor_disk),
      pids: parseThreshold(config.monitor_pids),
    },
    sustained: config.monitor_sustained,
    endedFor: parseEndedFor(config.monitor_kill),
  }
}

function opaOf({ opa_url: url, opa_path: path, opa_timeout_ms: timeoutMs }: Config) {
  return url === undefined ? null : { url, path, timeoutMs }
}

/** Which socket a process speaks on is who it is, so each has its own. */
function recorderSocket(runtimeDir: string, client: 'control-plane' | 'data-plane'): string {
  return join(runtimeDir, `recorder-${client}.sock`)
}

function keysSocket(runtimeDir: string): string {
  return join(runtimeDir, 'keys.sock')
}

function mainOf(name: string): string {
  return programOf(name, 'main')
}

function programOf(name: string, file: string): string {
  return fileURLToPath(new URL(`../../../dist/${name}/${file}.js`, import.meta.url))
}
