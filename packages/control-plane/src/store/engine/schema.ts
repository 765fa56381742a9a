import type { ArtifactTable } from './artifact-table.ts'
import type { GraphTable, JobLogTable, JobQueueTable, JobTable } from './job-tables.ts'

/**
 * The tables as queries see them. Columns are snake_case in the database; kysely's plugin turns them into these names.
 * Everything is text or a whole number, so that SQLite and PostgreSQL hold the same: ids are text, times are epoch
 * milliseconds, JSON is text, and a flag is 0 or 1.
 */
export interface Tables {
  readonly tenants: TenantTable
  readonly agents: AgentTable
  readonly agentLabels: AgentLabelTable
  readonly grants: GrantTable
  readonly apiKeys: ApiKeyTable
  readonly sandboxes: SandboxTable
  readonly sandboxLabels: SandboxLabelTable
  readonly sandboxTokens: SandboxTokenTable
  readonly commands: CommandTable
  readonly auditHeads: AuditHeadTable
  readonly nodes: NodeTable
  readonly templates: TemplateTable
  readonly sessions: SessionTable
  readonly steps: StepTable
  readonly budgets: BudgetTable
  readonly reservations: ReservationTable
  readonly usageFacts: UsageFactTable
  readonly modelCalls: ModelCallTable
  readonly modelCallEnds: ModelCallEndTable
  readonly kills: KillTable
  readonly killedSandboxes: KilledSandboxTable
  readonly policies: PolicyTable
  readonly approvals: ApprovalTable
  readonly webhooks: WebhookTable
  readonly secrets: SecretTable
  readonly tools: ToolTable
  readonly toolCounts: ToolCountTable
  readonly metricDetails: MetricDetailTable
  readonly metricPoints: MetricPointTable
  readonly alerts: AlertTable
  readonly artifacts: ArtifactTable
  readonly jobs: JobTable
  readonly graphs: GraphTable
  readonly jobQueues: JobQueueTable
  readonly jobLogs: JobLogTable
}

interface TenantTable {
  id: string
  createdAt: number
}

interface AgentTable {
  tenant: string
  id: string
  state: string
  generation: number
  approved: number
  version: string | null
  labels: string
  metadata: string
  owner: string
  createdAt: number
  updatedAt: number
  lastSeenAt: number | null
  /** A deleted agent keeps its row: its generation is never given again. */
  deletedAt: number | null
}

/** The labels of `agents` once more, as for sandboxes. */
interface AgentLabelTable {
  tenant: string
  agent: string
  key: string
  value: string
}

interface GrantTable {
  id: string
  tenant: string
  agent: string
  node: string
  path: string
  mode: string
  kind: string
  target: string
  allowed: string
  blocked: string
  dev: string
  ino: string
  createdAt: number
  createdBy: string
}

interface ApiKeyTable {
  id: string
  hash: string
  tenant: string
  role: string
  agents: string | null
  /** Which of our own key files it is in; null for keys that people made. */
  purpose: string | null
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  name: string
  platform: number
  createdBy: string
  lastUsedAt: number | null
  replaces: string | null
  person: string | null
}

export interface SandboxTable {
  id: string
  tenant: string
  agent: string
  generation: number
  name: string | null
  node: string
  bootId: string
  template: string
  image: string | null
  state: string
  labels: string
  limits: string
  mounts: string
  doors: string
  /** As JSON: names of models, and caps on their calls. */
  models: string
  modelLimits: string
  ttlMs: number
  idleMs: number
  onIdle: string
  maxPausedMs: number
  pausedAt: number | null
  pausedBy: string | null
  createdAt: number
  lastActiveAt: number
  expiresAt: number
  endsAt: number
  endedAt: number | null
  endReason: string | null
  error: string | null
  isolation: string | null
  actor: string
  /** 0 while the record of its end is owed. */
  recorded: number
}

/** The labels of `sandboxes` once more, so that a query can look for them without a dialect's JSON. */
interface SandboxLabelTable {
  sandbox: string
  key: string
  value: string
}

export interface CommandTable {
  id: string
  tenant: string
  agent: string
  sandbox: string
  argv: string
  cwd: string
  state: string
  exitCode: number | null
  signal: string | null
  timedOut: number
  cause: string | null
  truncated: number
  outputBytes: number
  maxOutputBytes: number
  /** What is kept of it beyond that, as JSON. */
  fullOutput: string | null
  startedAt: number
  endedAt: number | null
  actor: string
  /** 0 while the record of its end is owed. */
  recorded: number
  /** What Guardian said of it, as JSON. */
  decision: string | null
}

export interface TemplateTable {
  tenant: string
  name: string
  source: string
  spec: string
  /** Null until it is built. */
  image: string | null
  createdAt: number
}

export interface SessionTable {
  id: string
  tenant: string
  agent: string
  sandbox: string
  ownsSandbox: number
  runtime: string
  runtimeVersion: string
  state: string
  labels: string
  ttlMs: number
  restarts: number
  createdAt: number
  lastActiveAt: number
  expiresAt: number
  endedAt: number | null
  endReason: string | null
  actor: string
  /** 0 while the record of its end is owed. */
  recorded: number
}

export interface StepTable {
  id: string
  tenant: string
  agent: string
  sandbox: string
  session: string
  stepId: string
  codeHash: string
  status: string
  error: string | null
  cause: string | null
  restarted: number
  truncated: number
  outputBytes: number
  maxOutputBytes: number
  usage: string | null
  startedAt: number
  endedAt: number | null
  actor: string
  /** 0 while the record of its end is owed. */
  recorded: number
  /** What Guardian said of it, as JSON. */
  decision: string | null
}

/** Limits that somebody set; null is the default of the server. */
export interface BudgetTable {
  tenant: string
  /** Empty: the tenant as a whole. */
  agent: string
  sandboxes: number | null
  memoryBytes: number | null
  diskBytes: number | null
  cpuMillis: number | null
  computeSecondsPerDay: number | null
  microDollarsPerDay: number | null
  modelCallsPerDay: number | null
  modelTokensPerDay: number | null
  updatedAt: number
}

/** What a sandbox holds of the budgets of its agent and tenant, and of its node. */
export interface ReservationTable {
  sandbox: string
  id: string
  tenant: string
  agent: string
  node: string
  memoryBytes: number
  diskBytes: number
  cpuMillis: number
}

/** Every version of every policy. Rows are only added. */
interface PolicyTable {
  /** A tenant; empty: the whole server. */
  scope: string
  name: string
  version: number
  /** Null: out of force since this version. */
  document: string | null
  createdAt: number
  createdBy: string
}

/** The ledger. `key` is unique in its source, so that nothing is counted twice. */
export interface UsageFactTable {
  source: string
  key: string
  tenant: string
  agent: string
  sandbox: string
  /** In UTC, as 2026-01-31. */
  day: string
  wallMs: number
  cpuMs: number
  computeMs: number
  microDollars: number
  at: number
  /** Of a model call; null in facts about compute. */
  model: string | null
  upstream: string | null
  inputTokens: number | null
  outputTokens: number | null
  cacheReadTokens: number | null
  cacheWriteTokens: number | null
  /** 1 where the upstream did not report usage: the call is charged its ceiling. */
  estimated: number
  /** 1 for a model call that was sent: these count against budgets. */
  calls: number
  /** Tokens that count against budgets: reported ones, or the ceiling where the upstream did not report. */
  chargedTokens: number
}

/** Model calls under way, each with the money set aside for it. */
export interface ModelCallTable {
  id: string
  node: string
  /** The doors process that holds the call, by the id it has while it runs. */
  doors: string
  tenant: string
  agent: string
  sandbox: string
  model: string
  upstream: string
  /** As JSON: the prices at which the call was opened are those at which it is billed. */
  price: string
  ceilingMicroDollars: number
  ceilingTokens: number
  /** The day whose budget pays, in UTC, as 2026-01-31. */
  day: string
  openedAt: number
  expiresAt: number
}

/** A call that is a fact of the ledger, and owes its last record. */
export interface ModelCallEndTable {
  id: string
  node: string
  /** As JSON. */
  record: string
}

/** `hash` and `wideHash` say what was asked for; one ask about the same is pending at a time. */
interface ApprovalTable {
  id: string
  tenant: string
  requester: string
  agent: string | null
  sandbox: string | null
  point: string
  summary: string
  question: string
  hash: string
  wideHash: string
  decision: string
  state: string
  scope: string | null
  createdAt: number
  changedAt: number
  expiresAt: number
  answeredBy: string | null
  answeredAt: number | null
  note: string | null
  usedAt: number | null
  usedBy: string | null
}

interface WebhookTable {
  id: string
  tenant: string
  url: string
  events: string
  secret: string
  createdAt: number
  createdBy: string
  lastAt: number | null
  lastError: string | null
}

interface SecretTable {
  tenant: string
  name: string
  origin: string
  keyId: string
  sealed: string
  version: number
  createdAt: number
  updatedAt: number
  updatedBy: string
}

interface ToolTable {
  tenant: string
  name: string
  /** As JSON. */
  spec: string
  version: number
  createdAt: number
  updatedAt: number
  updatedBy: string
}

/** Calls of tools by each sandbox that made one. */
interface ToolCountTable {
  sandbox: string
  calls: number
}

/** Only of sandboxes whose tokens were taken back. */
interface SandboxTokenTable {
  sandbox: string
  voidBefore: number
}

interface NodeTable {
  id: string
  url: string
  holder: string
  beat: number
  seenAt: number
  clockAt: number
  auditKey: string | null
}

/** The latest head of each chain: a tenant has one on every node that did something for it. */
interface AuditHeadTable {
  tenant: string
  node: string
  seq: number
  hash: string
  head: string
  storedAt: number
}

/** Killswitches: on as long as they are not lifted. */
interface KillTable {
  id: string
  scope: string
  /** Empty: everything. */
  tenant: string
  /** Empty: the tenant as a whole, or everything. */
  target: string
  reason: string
  actor: string
  at: number
  liftedAt: number | null
  liftedBy: string | null
}

interface KilledSandboxTable {
  kill: string
  sandbox: string
  tenant: string
  node: string
  frozenMs: number | null
  goneMs: number | null
  processes: number | null
  verified: number
}

/** The samples of a minute, as JSON. `subject` is a sandbox, or an agent on a node. */
interface MetricDetailTable {
  subject: string
  /** Of the first of them. */
  at: number
  points: string
}

/** What samples add up to. Sums, so that rows can be added; null is what nobody could tell. */
export interface MetricPointTable {
  subject: string
  resolutionMs: number
  /** Of the first sample of a minute; of fifteen, their beginning. */
  at: number
  samples: number
  /** How long the counters were seen to grow. */
  countedMs: number
  cpuMs: number | null
  /** In hundredths of a percent of a processor. */
  cpuMax: number | null
  memorySum: number | null
  memoryMax: number | null
  pidsSum: number | null
  pidsMax: number | null
  diskSum: number | null
  throttledMs: number | null
  readBytes: number | null
  writtenBytes: number | null
  oomKills: number | null
}

interface AlertTable {
  id: string
  tenant: string
  agent: string
  sandbox: string
  resource: string
  level: string
  /** Of the limit, when it was raised. */
  permille: number
  threshold: number
  raisedAt: number
  clearedAt: number | null
}
