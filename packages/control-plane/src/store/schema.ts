/**
 * The tables as queries see them. Columns are snake_case in the database; kysely's plugin turns them into these names.
 * Everything is text or a whole number, so that SQLite and PostgreSQL hold the same: ids are text, times are epoch
 * milliseconds, JSON is text, and a flag is 0 or 1.
 */
export interface Tables {
  readonly tenants: TenantTable
  readonly agents: AgentTable
  readonly apiKeys: ApiKeyTable
  readonly sandboxes: SandboxTable
  readonly sandboxLabels: SandboxLabelTable
  readonly commands: CommandTable
  readonly auditHeads: AuditHeadTable
  readonly nodes: NodeTable
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
  createdAt: number
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
  state: string
  labels: string
  limits: string
  ttlMs: number
  idleMs: number
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
  truncated: number
  outputBytes: number
  maxOutputBytes: number
  startedAt: number
  endedAt: number | null
  actor: string
  /** 0 while the record of its end is owed. */
  recorded: number
}

interface NodeTable {
  id: string
  url: string
  holder: string
  beat: number
  seenAt: number
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
