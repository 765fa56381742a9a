const MIB = 1024 * 1024
const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** What a sandbox that is made for a session starts from, unless a template is named; `data` has numpy, pandas and matplotlib. */
export const SESSION_TEMPLATES = { python: 'data', node: 'base', bash: 'base' } as const

/** What a Python program imports that only the template `data` has. */
export const DATA_MODULES = ['PIL', 'matplotlib', 'mpl_toolkits', 'numpy', 'pandas', 'pylab', 'scipy'] as const

/** The one table of defaults and bounds: API, CLI and documentation read it. */
export const DEFAULTS = {
  ttlMs: { default: 10 * MINUTE, min: SECOND, max: 24 * HOUR },
  idleMs: { default: 60 * MINUTE, min: SECOND, max: 24 * HOUR },
  maxPausedMs: { default: 24 * HOUR, min: SECOND, max: 24 * HOUR },
  maxLifetimeMs: { default: 24 * HOUR, min: SECOND, max: 24 * HOUR },
  memoryBytes: { default: 512 * MIB, min: 64 * MIB, max: 256 * 1024 * MIB },
  cpus: { default: 1, min: 0.1, max: 256 },
  pids: { default: 256, min: 16, max: 32_768 },
  diskBytes: { default: 1024 * MIB, min: 16 * MIB, max: 1024 * 1024 * MIB },
  /** Of a disk of the default size; a larger one has more, unless it is said. */
  inodes: { default: 65_536, min: 1024, max: 16_777_216 },
  openFiles: { default: 4096, min: 64, max: 1_048_576 },
  /** Of all processes of a sandbox together, since its start. */
  cpuSeconds: { default: null, min: 1, max: 1_000_000_000 },
  keyOverlapMs: { default: 24 * HOUR, min: 0, max: 30 * 24 * HOUR },
  agentSandboxes: { default: 5, min: 0, max: 100_000 },
  /** Five sandboxes of the default size fit, of the template `data` too. */
  agentMemoryBytes: { default: 5 * 1024 * MIB, min: 0, max: 1024 * 1024 * 1024 * MIB },
  /** Ten disks of the default size. */
  agentDiskBytes: { default: 10 * 1024 * MIB, min: 0, max: 1024 * 1024 * 1024 * MIB },
  agentCpus: { default: 5, min: 0, max: 1_000_000 },
  /** As much as the cpus above can do in a day. */
  agentComputeSecondsPerDay: { default: 5 * 24 * 3600, min: 0, max: 100_000_000_000 },
  agentDollarsPerDay: { default: 10, min: 0, max: 1_000_000 },
  agentModelCallsPerDay: { default: 100_000, min: 0, max: 1_000_000_000 },
  /** Input, output and cached tokens together. */
  agentModelTokensPerDay: { default: 1_000_000_000, min: 0, max: 1_000_000_000_000 },
  /** Caps of one sandbox over its whole life; null is no cap beside the budgets of its agent and tenant. */
  sandboxModelCalls: { default: null, min: 0, max: 1_000_000_000 },
  sandboxModelTokens: { default: null, min: 0, max: 1_000_000_000_000 },
  sandboxModelDollars: { default: null, min: 0, max: 1_000_000 },
  sandboxConcurrentModelCalls: { default: 16, min: 1, max: 256 },
  sessionTtlMs: { default: 15 * MINUTE, min: SECOND, max: 24 * HOUR },
  commandTimeoutMs: { default: 300 * SECOND, min: 1, max: 24 * HOUR },
  commandCpuMs: { default: null, min: 1, max: 24 * HOUR },
  maxOutputBytes: { default: 2 * MIB, min: 0, max: 256 * MIB },
  /** A try of a job; an hour less than its sandbox may live. */
  jobTimeoutMs: { default: HOUR, min: 1, max: 23 * HOUR },
  jobQueueMs: { default: 24 * HOUR, min: SECOND, max: 7 * 24 * HOUR },
  jobRetries: { default: 0, min: 0, max: 10 },
  jobRetryDelayMs: { default: SECOND, min: 0, max: HOUR },
  artifactTtlMs: { default: 30 * 24 * HOUR, min: SECOND, max: 365 * 24 * HOUR },
  artifactLinkMs: { default: 15 * MINUTE, min: SECOND, max: 7 * 24 * HOUR },
  jobOutputBytes: { default: 2 * MIB, min: 0, max: 16 * MIB },
  runTimeoutMs: { default: 10 * MINUTE, min: SECOND, max: 6 * HOUR },
} as const

/** Bounds that no caller can move. */
export const BOUNDS = {
  nameLength: 63,
  labels: 32,
  labelLength: 128,
  argv: 1024,
  argBytes: 128 * 1024,
  env: 128,
  envBytes: 64 * 1024,
  pathBytes: 4095,
  stdinBytes: MIB,
  jsonBodyBytes: MIB,
  uploadBytes: 64 * 1024 * MIB,
  pageSize: 200,
  listEntries: 10_000,
  /** Commands of one sandbox running at once. */
  commands: 64,
  /** Ended commands of one sandbox whose output is kept. */
  endedCommands: 256,
  /** Output of one sandbox on the host: of what ended, and what all that runs may say together. */
  endedOutputBytes: 512 * MIB,
  runningOutputBytes: 1024 * MIB,
  codeBytes: MIB,
  /** Rich outputs of one step, beside its text. */
  richBytes: 8 * MIB,
  /** Interpreters of one sandbox. */
  sessions: 16,
  /** Steps of one session that wait for their turn. */
  waitingSteps: 32,
  /** Ended steps of one session whose output is kept; later its result is known without it. */
  endedSteps: 256,
  templatePackages: 64,
  /** Templates of one tenant. */
  templates: 32,
  /** Models that one sandbox, template or agent names. */
  models: 64,
  /** An image that is imported, unpacked. */
  imageBytes: 16 * 1024 * MIB,
  imageEntries: 500_000,
  versionLength: 64,
  /** What an agent may carry along, as JSON. */
  metadataBytes: 16 * 1024,
  /** Agents of one tenant. */
  agents: 10_000,
  /** Keys of one tenant that are good. */
  keys: 1000,
  keyLifeMs: { min: SECOND, max: 3650 * 24 * HOUR },
  /** Agents that one key is bound to. */
  keyAgents: 64,
  /** Host paths of one agent. */
  grants: 32,
  /** Patterns of one grant, of each sort. */
  patterns: 32,
  patternLength: 256,
  /** Rules of one policy, globs of one list, and examples of one rule, of each sort. */
  policyRules: 200,
  ruleGlobs: 128,
  ruleExamples: 64,
  exampleLength: 8192,
  /** Policies of one tenant, and versions of one policy. */
  policies: 50,
  policyVersions: 10_000,
  /** Recorded decisions that one backtest replays. */
  backtest: 10_000,
  reasonLength: 512,
  /** The agents of a tenant together have so many times what one of them has, unless its budget says otherwise. */
  tenantShare: 10,
  /** How long an ask may be answered, and how long a single approval may be used after that. */
  approvalMs: 15 * MINUTE,
  /** How long a caller may wait for the answer. */
  approvalWaitMs: 300 * SECOND,
  /** Asks of one agent that nobody has answered. */
  /** JSON that an ask of a program inside may say of its action. */
  askDetailBytes: 4096,
  /** Asks of one sandbox that wait for an answer. */
  pendingAsks: 8,
  pendingApprovals: 100,
  /** The same of one tenant. */
  tenantPendingApprovals: 1000,
  /** An approval that is used again and again ends after this at the latest. */
  approvalLifeMs: 30 * 24 * HOUR,
  /** What is written by an ask is read before it is asked, up to this. */
  askedBytes: 16 * MIB,
  noteLength: 1000,
  /** Secrets and tools of one tenant. */
  secrets: 64,
  tools: 128,
  /** Calls of tools of one sandbox in its life; denied ones count. */
  toolCalls: 500,
  /** Webhooks of one tenant. */
  webhooks: 16,
  webhookUrl: 2048,
  /** Event streams at once, of one tenant and of all. */
  eventStreams: { tenant: 64, all: 256 },
  /** The same of streams of metrics. */
  metricStreams: { tenant: 64, all: 256 },
  /** Code of a job, and the files that it is given. */
  jobCodeBytes: MIB / 2,
  jobFiles: 64,
  /** Artifacts that a job is given as files. */
  jobInputs: 32,
  artifactPatterns: 32,
  artifactName: 1024,
  /** Files of one collection, and names that it looks at to find them. */
  collectedArtifacts: 1000,
  collectedNames: 200_000,
  /** Artifacts that the result of a job names. */
  jobArtifactsShown: 100,
  /** Downloads by links at once, of one tenant and of all. */
  linkedDownloads: { tenant: 16, all: 64 },
  /** Jobs of one tenant that wait. */
  queuedJobs: 10_000,
  /** How long a job that has ended, and its log, are kept. */
  jobKeptMs: 7 * 24 * HOUR,
  /** Agent programs of one tenant. */
  graphs: 64,
  graphTextBytes: 512,
  /** Messages that a run is given. The whole request is bounded by jsonBodyBytes. */
  runMessages: 512,
  runMessageLength: MIB,
  /** Of the result of a run. */
  runPayloads: 16,
  runErrorLength: 4096,
  /** One line of the event output, and the text of a run. */
  runLineBytes: MIB,
  runTextBytes: MIB,
  /** What is kept of what the program of a run prints. */
  runLogBytes: MIB / 4,
  /** So long before its timeout a run is asked to end with SIGTERM; of a short one a tenth of it. */
  runGraceMs: 10 * SECOND,
  /** Sandboxes of one node, unless configured. */
  sandboxesPerNode: 50,
} as const
