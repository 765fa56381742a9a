import type { GuestRuntime } from '@airlock/contract/guest'

/**
 * How the guest and the driver of an interpreter talk.
 *
 * A driver is the program that an interpreter runs for a whole session. It is started as user code (uid 1000, no
 * rights, in the group of its session), in the directory of the session and with its environment. Its fds 0, 1 and 2
 * are /dev/null; fd 3 is one duplex stream to the guest, and the only thing that both talk on. A driver moves fd 3 away
 * from user code at once: to a high number, close-on-exec.
 *
 * Both sides send lines that end with "\n". A line of a driver is one JSON object, `DriverMessage`, of at most
 * `LINE_BYTES`; whoever sends anything else is killed and started anew. A line to a driver is what its
 * `Kernel.encodeStep` makes of a `StepRequest`, so that each interpreter gets what it can read best: one JSON object for
 * Python and Node, a line to eval for bash.
 *
 * 1. The driver says `ready` once, when it can take a step.
 * 2. The guest sends one step, and no other before its `done`. The step has a fresh random `nonce`; every answer
 *    carries it, and answers with another nonce are ignored. So a step can lie about itself, and about no other.
 * 3. The driver opens `stdout` and `stderr` (FIFOs, write-only: opening never blocks, the guest has the other end open)
 *    and `stdin` (a file or /dev/null, read-only), and puts them on fds 1, 2 and 0 for the time of the step. The names
 *    are valid until `done`. A driver must get on when fds 0, 1 or 2 were closed by an earlier step: `open` may then
 *    give it one of these numbers.
 * 4. It adds `env` to its environment, runs `code`, and says what it has to show as `rich` messages: `display` at any
 *    time, `result` once for the value of the last expression, `error` when it fails. Of several errors the last counts.
 * 5. It flushes, puts /dev/null back on fds 0, 1 and 2, closes the FIFOs, puts the environment back as it was, and only
 *    then says `done`. Whatever was written before `done` belongs to the step; whatever children, threads or timers
 *    write later to the old FIFOs belongs to nobody and is read and dropped.
 * 6. After `done` it takes the next step at once. Code that a step left behind must neither end the driver, nor speak on
 *    its channel (a forked child drops it), nor end up in the output of a later step where the interpreter can tell.
 *
 * An interrupt is what `Kernel.interrupt` says: SIGINT to the process group of the driver, or the line of
 * `encodeInterrupt` on the channel, or both. The driver then stops the code, keeps the state, and says `error` and
 * `done` with status `failed` as for any failure; the guest names the error (`Interrupted` or `Timeout`) itself. An
 * interrupt that finds no step running, or another one, is ignored. Where it has no effect within a second after the
 * deadline of a step, the guest kills the whole group and starts a clean interpreter; so it does when the process exits
 * or closes its channel.
 *
 * A driver has no need to end itself: a session is closed by killing its group.
 */
export interface Kernel {
  /** The program and its arguments. A program without "/" is looked for in PATH. */
  argv(places: KernelPlaces): readonly string[]
  /** Variables that the interpreter needs; those of the session win. */
  readonly env: Readonly<Record<string, string>>
  /** One line without its "\n". */
  encodeStep(request: StepRequest): string
  readonly interrupt: KernelInterrupt
}

export interface KernelPlaces {
  /** The directory of the drivers, one file each; user code can read it and not write it. */
  readonly kernels: string
  /** Our own Node, as the words that come before its arguments: a program, or a loader and a program. */
  readonly node: readonly string[]
}

export interface KernelInterrupt {
  /** SIGINT for every process of the driver's process group, so that a child that it waits for ends too. */
  readonly signal: boolean
  /** One line without its "\n", for a driver that listens while code runs. It is sent before the signal. */
  readonly encode?: (nonce: string) => string
}

/** A step as the driver gets it; the three streams are absolute paths. */
export interface StepRequest {
  readonly type: 'step'
  /** 32 lower-case hexadecimal digits. */
  readonly nonce: string
  readonly code: string
  /** Names are shell identifiers; values contain no NUL. For this step only. */
  readonly env: Readonly<Record<string, string>>
  readonly stdin: string
  readonly stdout: string
  readonly stderr: string
}

export type DriverMessage =
  /** What answers there, as it calls itself: "Python 3.11.2". At most 128 characters. */
  | { readonly type: 'ready'; readonly version: string }
  | { readonly type: 'rich'; readonly nonce: string; readonly line: DriverRichLine }
  | { readonly type: 'done'; readonly nonce: string; readonly status: 'completed' | 'failed' }

/** As `richLine` of the contract; `data` holds one thing by media type. */
export type DriverRichLine =
  | { readonly kind: 'display' | 'result'; readonly data: Readonly<Record<string, unknown>> }
  | { readonly kind: 'error'; readonly error: DriverError }

/** The driver bounds it: `ERROR_BYTES` of UTF-8 each. */
export interface DriverError {
  readonly name: string
  readonly message: string
  readonly traceback: string
}

export const ERROR_BYTES = { name: 256, message: 8 * 1024, traceback: 32 * 1024 } as const

/** A longer line of a driver ends it. A driver replaces a bundle that would not fit by a small one that says so. */
export const LINE_BYTES = 9 * 1024 * 1024

/** A bundle that is longer as JSON is not worth sending: the guest would drop it. */
export const BUNDLE_BYTES = 7 * 1024 * 1024

/** Where a runtime is absent, its sessions are refused with `runtime_unavailable`. */
export type Kernels = Readonly<Partial<Record<GuestRuntime, Kernel>>>
