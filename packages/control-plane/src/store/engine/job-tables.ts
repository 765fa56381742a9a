export interface JobTable {
  id: string
  tenant: string
  agent: string
  actor: string
  state: string
  spec: string | null
  labels: string
  argv: string
  language: string | null
  template: string
  sha256: string
  idempotencyKey: string | null
  fingerprint: string
  timeoutMs: number
  queueMs: number
  queueEndsAt: number
  retries: number
  retryDelayMs: number
  tries: number
  notBefore: number
  node: string | null
  leaseUntil: number | null
  sandbox: string | null
  command: string | null
  cancelAt: number | null
  cancelBy: string | null
  hasResult: number
  exitCode: number | null
  signal: string | null
  cause: string | null
  error: string | null
  truncated: number
  artifacts: string | null
  resourceUsage: string | null
  provenance: string | null
  logBytes: number
  logStart: number
  createdAt: number
  startedAt: number | null
  endedAt: number | null
  endNode: string | null
  recorded: number
  run: string | null
  result: string | null
}

/** Agent programs of tenants. */
export interface GraphTable {
  tenant: string
  name: string
  spec: string
  createdAt: number
}

/** One for each agent that ever had a job. */
export interface JobQueueTable {
  tenant: string
  agent: string
  queued: number
  /** The number of the claim that served it last; 0 before the first. */
  claimed: number
  blockedUntil: number
}

export interface JobLogTable {
  job: string
  /** Of its first byte, in the log of all tries. */
  start: number
  attempt: number
  stream: string
  base64: string
}
