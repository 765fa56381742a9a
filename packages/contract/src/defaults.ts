const MIB = 1024 * 1024
const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The one table of defaults and bounds: API, CLI and documentation read it. */
export const DEFAULTS = {
  ttlMs: { default: 10 * MINUTE, min: SECOND, max: 24 * HOUR },
  idleMs: { default: 60 * MINUTE, min: SECOND, max: 24 * HOUR },
  maxLifetimeMs: { default: 24 * HOUR, min: SECOND, max: 24 * HOUR },
  memoryBytes: { default: 512 * MIB, min: 64 * MIB, max: 256 * 1024 * MIB },
  cpus: { default: 1, min: 0.1, max: 256 },
  pids: { default: 256, min: 16, max: 32_768 },
  diskBytes: { default: 1024 * MIB, min: 16 * MIB, max: 1024 * 1024 * MIB },
  commandTimeoutMs: { default: 300 * SECOND, min: 1, max: 24 * HOUR },
  maxOutputBytes: { default: 2 * MIB, min: 0, max: 256 * MIB },
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
  /** Sandboxes of one node, unless configured. */
  sandboxesPerNode: 50,
} as const
