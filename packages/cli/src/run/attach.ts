import { outputBytes, type Command, type CommandEvent, type CommandLine, type CommandOptions } from '@airlock/sdk'
import { AirlockError, type RunningCommand, type Sandbox } from '@airlock/sdk'
import { constants } from 'node:os'
import { fstatSync } from 'node:fs'
import type { Interrupts } from './interrupts.ts'
import { noInput } from './prompt-of.ts'
import { explainEnd } from '../text/end-sentence.ts'
import { Exit } from '../failure.ts'
import { Sanitizer } from '../text/sanitize.ts'
import type { Terminal } from '../text/terminal.ts'
import { formatBytes } from '../text/units.ts'

export interface Attachment {
  readonly sandbox: Sandbox
  readonly line: CommandLine
  readonly options: CommandOptions
  readonly interrupts: Interrupts
  /** Told when the command does not get our stdin. */
  readonly onRefused?: ((error: AirlockError) => void) | undefined
}

/** Runs a command with our stdin, stdout and stderr. Answers it ended; throws `Exit` when we were told to stop. */
export async function attach(terminal: Terminal, attachment: Attachment): Promise<Command> {
  const printer = new OutputPrinter(terminal)
  let limitBytes: number | undefined
  const onRefused = (error: AirlockError) => terminal.note(`airlock: ${error.message} ${error.hint}`)
  return follow({ ...attachment, onRefused }, async (event) => {
    await printer.print(event)
    if (event.event === 'truncated') limitBytes = event.limitBytes
    if (event.event === 'ended') {
      const why = await explainEnd(event.command, attachment.sandbox)
      if (why !== undefined) terminal.note(`airlock: ${why}`)
      const idle = process.stdin.isTTY && isSilent(event.command) ? noInput(event.command.argv) : undefined
      if (idle !== undefined) terminal.note(`airlock: ${idle}`)
      if (limitBytes !== undefined) terminal.note(`airlock: ${cutSentence(event.command, limitBytes)}`)
    }
  })
}

/** It ended well, without a word. */
function isSilent({ exitCode, outputBytes: bytes }: Command): boolean {
  return exitCode === 0 && bytes === 0
}

/** What is not shown, and how to get it. */
function cutSentence({ id, sandbox, fullOutput }: Command, limitBytes: number): string {
  const cut = `output over ${formatBytes(limitBytes)} is not shown.`
  if (fullOutput === null) return `${cut} To keep all of it, write it to a file in the sandbox.`
  return `${cut} All of it: airlock logs --full ${sandbox} ${id}`
}

/** The same, with the output as text in the answer instead of on the screen. */
export async function attachQuietly(
  attachment: Attachment,
): Promise<Command & { readonly stdout: string; readonly stderr: string }> {
  const chunks = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const command = await follow(attachment, async (event) => {
    if (event.event === 'output') chunks[event.stream].push(outputBytes(event))
  })
  const text = (name: 'stdout' | 'stderr'): string => Buffer.concat(chunks[name]).toString('utf8')
  return { ...command, stdout: text('stdout'), stderr: text('stderr') }
}

/** What a shell would make of how it ended. */
export function exitCodeOf(command: Command): number {
  if (command.exitCode !== null) return command.exitCode
  const numbers: Readonly<Record<string, number>> = constants.signals
  return 128 + (numbers[command.signal ?? ''] ?? 0)
}

/** Prints output events: exactly as they are into a file or a pipe, and harmless on a terminal. */
export class OutputPrinter {
  readonly #terminal: Terminal
  readonly #sanitizers: Readonly<Record<'stdout' | 'stderr', Sanitizer | undefined>>

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    this.#sanitizers = {
      stdout: process.stdout.isTTY ? new Sanitizer() : undefined,
      stderr: process.stderr.isTTY ? new Sanitizer() : undefined,
    }
  }

  async print(event: CommandEvent): Promise<void> {
    if (event.event === 'ended') await this.finish()
    if (event.event === 'output') await this.write(event.stream, outputBytes(event))
  }

  async write(stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> {
    await this.#terminal.write(stream, this.#sanitizers[stream]?.push(bytes) ?? bytes)
  }

  async finish(): Promise<void> {
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = this.#sanitizers[stream]?.finish() ?? ''
      if (rest !== '') await this.#terminal.write(stream, rest)
    }
  }
}

async function follow(
  { sandbox, line, options, interrupts, onRefused }: Attachment,
  onEvent: (event: CommandEvent) => Promise<void>,
): Promise<Command> {
  const over = new AbortController()
  const signal = interrupts.stopped
  const stdin = hasInput() ? { stdin: 'open' as const } : {}
  try {
    for await (const event of sandbox.stream(line, { ...options, ...stdin, signal })) {
      if (event.event === 'started')
        connect(sandbox.command(event.command.id), { interrupts, over: over.signal, onRefused })
      await untilStopped(onEvent(event), signal)
      if (event.event === 'ended') return event.command
    }
  } catch (error) {
    throw interrupts.stopped.aborted ? new Exit(interrupts.exitCode) : error
  } finally {
    over.abort()
  }
  throw new AirlockError('server_unreachable', 'The stream ended before the command.')
}

/** Our stdin becomes the command's, and Ctrl-C is passed on. */
function connect(
  command: RunningCommand,
  { interrupts, over, onRefused }: Pick<Attachment, 'interrupts' | 'onRefused'> & { readonly over: AbortSignal },
): void {
  interrupts.onAsked(() => {
    // It may just have ended; a second Ctrl-C does not ask it any more.
    command.signal('SIGINT').catch(() => undefined)
  })
  if (!hasInput()) return
  command.end(process.stdin, over).catch((error: unknown) => {
    // A command need not read its stdin to the end.
    if (!(error instanceof AirlockError) || error.code !== 'policy_denied') return
    onRefused?.(error)
    // It would wait for more.
    command.end().catch(() => undefined)
  })
}

/** A reader of our output that hangs must not keep us from stopping. */
async function untilStopped(work: Promise<void>, stopped: AbortSignal): Promise<void> {
  stopped.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => reject(new Exit(1))
    stopped.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => stopped.removeEventListener('abort', stop))
  })
}

/** Something was piped or redirected to us. A terminal or /dev/null has nothing to say. */
function hasInput(): boolean {
  try {
    const stats = fstatSync(0)
    return stats.isFIFO() || stats.isFile() || stats.isSocket()
  } catch {
    // Closed: no input.
    return false
  }
}
