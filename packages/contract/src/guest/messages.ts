/**
 * What host and guest say to each other. The guest dials the host, sends `hello`, and the host answers `attach`.
 *
 * Bytes (a command's output and stdin, a file's content) flow in data frames on a *channel*, a number that the host
 * chose. Each direction of a channel is a sequence of bytes counted by `offset`. The receiver acknowledges with `ack`;
 * the sender keeps what is not acknowledged, at most `WINDOW_BYTES`, then stops producing: backpressure, not loss.
 * After a reconnect `attach` carries what the host already has, and the guest goes on from there.
 *
 * These are plain types, so that the guest needs no library; the host parses every frame that comes out of a sandbox
 * with the schemas in `schemas.ts` and believes nothing that does not fit.
 */

export const PROTOCOL_VERSION = 1
/** Unacknowledged bytes of one direction of one channel. */
export const WINDOW_BYTES = 1024 * 1024
/** Rich lines of one step. */
export const RICH_BYTES = 8 * 1024 * 1024
/** The event output of one command. */
export const EVENT_OUTPUT_BYTES = 4 * 1024 * 1024
/** The file descriptor of the event output. */
export const EVENT_OUTPUT_FD = 3
/** Payload of one data frame. */
export const CHUNK_BYTES = 64 * 1024
/** A whole frame, either kind; a longer one ends the connection. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024

export type OutputStream = 'stdout' | 'stderr'

export interface GuestCommandSpec {
  readonly id: string
  readonly channel: number
  readonly argv: readonly string[]
  readonly cwd: string
  /** Added to the guest's own allowlisted environment. */
  readonly env: Readonly<Record<string, string>>
  readonly stdin: 'none' | 'open'
  readonly timeoutMs: number
  /** Of stdout and stderr together. */
  readonly maxOutputBytes: number
  /** Gives the command a third output at `EVENT_OUTPUT_FD`, sent as stream `rich` and capped by `EVENT_OUTPUT_BYTES`. */
  readonly eventOutput?: true
  readonly limits?: GuestProcessLimits
}

/** What the kernel holds each process to that comes of it. */
export interface GuestProcessLimits {
  readonly openFiles?: number
  /** SIGXCPU when it is used up, and SIGKILL a second later. */
  readonly cpuSeconds?: number
}

/** A stateful interpreter that the host asked for. */
export interface GuestSessionSpec {
  readonly id: string
  readonly runtime: GuestRuntime
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly limits?: GuestProcessLimits
}
export type GuestRuntime = 'python' | 'node' | 'bash'

/** What became of it; `runtimeVersion` is what answers there, as it calls itself. */
export interface GuestSession {
  readonly id: string
  readonly runtime: GuestRuntime
  readonly runtimeVersion: string
  readonly restarts: number
}

/**
 * Code for a session. It takes its turn there, says stdout, stderr and rich lines on its channel, and ends like a
 * command: exit code 0 when it completed, 1 when it failed. Why it failed is the last rich line.
 */
export interface GuestStepSpec {
  readonly id: string
  readonly channel: number
  readonly session: string
  readonly code: string
  readonly env: Readonly<Record<string, string>>
  readonly stdin: string
  readonly timeoutMs: number
  /** Of stdout and stderr together; rich lines have a cap of their own, `RICH_BYTES`. */
  readonly maxOutputBytes: number
}

export interface GuestCommandEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  readonly durationMs: number
  /** Forks that were refused to a command that failed, where the kernel counts them in its own group, which is gone by now. */
  readonly forksRefused?: number
  /** Of a step: its interpreter was started anew. */
  readonly restarted?: boolean
}

/** A command that the guest has not been told to forget. */
export interface GuestCommandState {
  readonly id: string
  readonly channel: number
  /** Bytes of output produced so far, what was dropped by the cap not counted. */
  readonly produced: number
  readonly truncated: boolean
  readonly end: GuestCommandEnd | null
  /** All output is out: exit is not end of output. */
  readonly closed: boolean
}

export interface GuestFileEntry {
  readonly name: string
  readonly path: string
  readonly kind: 'file' | 'directory' | 'symlink' | 'other'
  readonly size: number
  readonly mode: number
  readonly modifiedMs: number
  readonly target?: string
}

export interface GuestFound {
  readonly files: readonly { readonly path: string; readonly size: number }[]
  /** The first of what matched and is no regular file, or could not be looked at. */
  readonly skipped: readonly { readonly path: string; readonly why: string }[]
  readonly skippedCount: number
  /** Why it stopped before it had seen everything. */
  readonly stopped?: 'files' | 'names' | 'time'
}

export type GuestRequest =
  | { readonly op: 'ping' }
  /** A token for the doors, in place of the one before. The guest renews it by itself at half of its life. */
  | { readonly op: 'token'; readonly token: string; readonly lifeMs: number }
  | { readonly op: 'run'; readonly command: GuestCommandSpec }
  | { readonly op: 'signal'; readonly channel: number; readonly signal: string }
  /** The host has the end and all output: the guest may forget the command. */
  | { readonly op: 'forget'; readonly channel: number }
  /** Starts an interpreter; an id that is known is answered as it is. */
  | { readonly op: 'session.open'; readonly session: GuestSessionSpec }
  | { readonly op: 'session.list' }
  /** Interrupts the step that runs, if any; what the session remembers is kept. */
  | { readonly op: 'session.interrupt'; readonly session: string }
  | { readonly op: 'session.restart'; readonly session: string }
  | { readonly op: 'session.close'; readonly session: string }
  | { readonly op: 'step'; readonly step: GuestStepSpec }
  /** Opens a file; its bytes follow on `channel`, then `eof`. */
  | {
      readonly op: 'file.read'
      readonly path: string
      readonly channel: number
      /** Only a regular file at exactly this path, by no link, and at most so long. */
      readonly exactly?: { readonly maxBytes: number }
    }
  /** Regular files by patterns; no link is followed. It looks at `names` names at most. */
  | {
      readonly op: 'file.find'
      readonly patterns: readonly string[]
      readonly files: number
      readonly names: number
    }
  /** Opens a file for the bytes that follow on `channel`; after the host's `eof` the guest says `written`. */
  | { readonly op: 'file.write'; readonly path: string; readonly mode: 'truncate' | 'append'; readonly channel: number }
  /** Sends a directory as a tar on `channel`, then `eof`. */
  | { readonly op: 'file.pack'; readonly path: string; readonly channel: number }
  /** Writes the tar that follows on `channel` below a directory; after the host's `eof` the guest says `written`. */
  | { readonly op: 'file.unpack'; readonly path: string; readonly channel: number }
  | { readonly op: 'file.stat'; readonly path: string }
  | { readonly op: 'file.list'; readonly path: string; readonly limit: number }
  | { readonly op: 'file.mkdir'; readonly path: string; readonly parents: boolean }
  | { readonly op: 'file.move'; readonly from: string; readonly to: string }
  | { readonly op: 'file.remove'; readonly path: string; readonly recursive: boolean }

/** What each request answers. */
export interface GuestResults {
  ping: Record<string, never>
  token: Record<string, never>
  run: { readonly startedMs: number }
  signal: Record<string, never>
  forget: Record<string, never>
  'session.open': GuestSession
  'session.list': { readonly sessions: readonly GuestSession[] }
  'session.interrupt': Record<string, never>
  'session.restart': GuestSession
  'session.close': Record<string, never>
  step: { readonly startedMs: number }
  'file.read': { readonly size: number }
  'file.find': GuestFound
  'file.write': Record<string, never>
  'file.pack': Record<string, never>
  'file.unpack': Record<string, never>
  'file.stat': GuestFileEntry
  'file.list': { readonly entries: readonly GuestFileEntry[]; readonly truncated: boolean }
  'file.mkdir': Record<string, never>
  'file.move': Record<string, never>
  'file.remove': Record<string, never>
}

/** The codes a guest may answer with; each is also a code of the error registry. */
export const GUEST_ERROR_CODES = [
  'invalid_request',
  'invalid_path',
  'permission_denied',
  'command_not_found',
  'command_ended',
  'stdin_closed',
  'file_not_found',
  'file_exists',
  'not_a_directory',
  'is_a_directory',
  'directory_not_empty',
  'archive_invalid',
  'file_changed',
  'executable_not_found',
  'too_many_commands',
  'session_not_found',
  'too_many_sessions',
  'too_many_steps',
  'runtime_unavailable',
  'runtime_crashed',
  'disk_full',
  'disk_failed',
  'internal',
] as const
export type GuestErrorCode = (typeof GUEST_ERROR_CODES)[number]

export interface GuestError {
  readonly code: GuestErrorCode
  readonly message: string
}

export type HostMessage =
  | { readonly type: 'attach'; readonly received: readonly { readonly channel: number; readonly offset: number }[] }
  | { readonly type: 'request'; readonly id: number; readonly request: GuestRequest }
  | { readonly type: 'ack'; readonly channel: number; readonly offset: number }
  | { readonly type: 'eof'; readonly channel: number }
  /** How long the sandbox was paused in all: said before it wakes, and at every attachment. */
  | { readonly type: 'slept'; readonly totalMs: number }
  /** The host no longer wants this file transfer. */
  | { readonly type: 'cancel'; readonly channel: number }

export type GuestMessage =
  | { readonly type: 'hello'; readonly protocol: number; readonly commands: readonly GuestCommandState[] }
  | { readonly type: 'result'; readonly id: number; readonly result: unknown }
  | { readonly type: 'failure'; readonly id: number; readonly error: GuestError }
  | { readonly type: 'ack'; readonly channel: number; readonly offset: number }
  | { readonly type: 'exited'; readonly channel: number; readonly end: GuestCommandEnd }
  | { readonly type: 'closed'; readonly channel: number; readonly produced: number; readonly truncated: boolean }
  | { readonly type: 'eof'; readonly channel: number; readonly bytes: number }
  | { readonly type: 'written'; readonly channel: number; readonly bytes: number }
  | { readonly type: 'broken'; readonly channel: number; readonly error: GuestError }
