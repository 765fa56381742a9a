import { z } from 'zod'
import { BOUNDS, DEFAULTS } from '../defaults.ts'
import { commandId, envVars, sandboxId, sandboxPath, time, within } from './scalars.ts'

export const commandState = z.enum(['running', 'exited', 'lost'])
export type CommandState = z.infer<typeof commandState>

/**
 * Why something that ran ended. `exit` and `signal` are its own doing; `killed_by_policy` is an end of its sandbox that
 * somebody or some rule ordered (a kill, a revoked agent, a budget, a limit), `sandbox_ended` any other one.
 */
export const endCause = z.enum([
  'exit',
  'signal',
  'forbidden_call',
  'timeout',
  'cpu_time',
  'out_of_memory',
  'pids_exhausted',
  'disk_full',
  'killed_by_policy',
  'sandbox_ended',
])
export type EndCause = z.infer<typeof endCause>

export const signalName = z.enum([
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGSTOP',
  'SIGCONT',
  'SIGWINCH',
])
export type SignalName = z.infer<typeof signalName>

const argument = z
  .string()
  .max(BOUNDS.argBytes)
  .refine((text) => !text.includes('\0'), 'must not contain NUL')

export const runCommandBody = z
  .strictObject({
    argv: z.array(argument).min(1).max(BOUNDS.argv).optional().describe('The program and its arguments; no shell.'),
    shell: argument.min(1).optional().describe('A line for /bin/sh, when a shell is wanted.'),
    cwd: sandboxPath.default('/workspace'),
    env: envVars.default({}),
    stdin: z
      .union([z.strictObject({ text: z.string().max(BOUNDS.stdinBytes) }), z.literal('open')])
      .optional()
      .describe('What to feed, or "open" to write with the stdin route; nothing when absent.'),
    timeoutMs: within(DEFAULTS.commandTimeoutMs).int().default(DEFAULTS.commandTimeoutMs.default),
    cpuTimeMs: within(DEFAULTS.commandCpuMs)
      .int()
      .optional()
      .describe(
        'Processor time of each of its processes, in whole seconds rounded up: SIGXCPU, and SIGKILL a second later.',
      ),
    maxOutputBytes: within(DEFAULTS.maxOutputBytes).int().default(DEFAULTS.maxOutputBytes.default),
    background: z.boolean().default(false).describe('Answer at once, with the command still running.'),
  })
  .refine((body) => (body.argv === undefined) !== (body.shell === undefined), 'give either argv or shell')
export type RunCommandBody = z.infer<typeof runCommandBody>

/** What is kept of an output beside what the caller asked for. */
export const keptOutput = z.strictObject({
  bytes: z.int(),
  /** It is not all of it either. */
  truncated: z.boolean(),
})
export type KeptOutput = z.infer<typeof keptOutput>

export const command = z.strictObject({
  id: commandId,
  sandbox: sandboxId,
  argv: z.array(z.string()),
  cwd: z.string(),
  state: commandState,
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  /** Null while it runs, and where nobody can tell any more. */
  cause: endCause.nullable(),
  /** Output past `maxOutputBytes` is not in the output. */
  truncated: z.boolean(),
  outputBytes: z.int(),
  /** What is kept of all that it said when that was too much, for a time; null while it runs, and where nothing is. */
  fullOutput: keptOutput.nullable(),
  startedAt: time,
  endedAt: time.nullable(),
  durationMs: z.number().nullable(),
})
export type Command = z.infer<typeof command>

export const commandResult = z.strictObject({ ...command.shape, stdout: z.string(), stderr: z.string() })
export type CommandResult = z.infer<typeof commandResult>

/**
 * One event of a command's stream. `offset` counts the bytes of both outputs together and is the event's SSE id.
 * Output is text where the chunk is whole UTF-8 and base64 where it is not, so nothing is lost.
 */
export const commandEvent = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('started'), command }),
  z.strictObject({
    event: z.literal('output'),
    stream: z.enum(['stdout', 'stderr']),
    offset: z.int(),
    text: z.string().optional(),
    base64: z.string().optional(),
  }),
  z.strictObject({ event: z.literal('truncated'), limitBytes: z.int() }),
  z.strictObject({ event: z.literal('ended'), command }),
  z.strictObject({
    event: z.literal('error'),
    error: z.strictObject({ code: z.string(), message: z.string(), hint: z.string() }),
  }),
])
export type CommandEvent = z.infer<typeof commandEvent>

export const signalCommandBody = z.strictObject({ signal: signalName })
