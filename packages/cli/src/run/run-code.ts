import { AirlockError, type Runtime, type Session, type StepOptions, type StepResult } from '@airlock/sdk'
import { Exit } from '../failure.ts'
import type { Interrupts } from './interrupts.ts'
import { Pictures } from '../text/pictures.ts'
import { StepPrinter } from './step-printer.ts'
import type { Terminal } from '../text/terminal.ts'

export interface Program {
  readonly session: Session
  readonly code: string
  /** What it calls itself, and its arguments. */
  readonly argv: readonly string[]
  readonly options: StepOptions
  readonly interrupts: Interrupts
  readonly json: boolean
}

/** Runs a whole program as one step, with what it says as it comes. Answers 0 when it completed and 1 when it failed. */
export async function runCode(terminal: Terminal, program: Program): Promise<number> {
  const { session, code, options, interrupts } = program
  const signal = interrupts.stopped
  interrupts.onAsked(() => {
    // It may just have ended; a second Ctrl-C ends us.
    session.interrupt().catch(() => undefined)
  })
  try {
    await setArguments(session, program.argv, signal)
    if (program.json) {
      const result = await session.run(code, { ...options, signal })
      await terminal.printJson(result)
      return exitCodeOf(result)
    }
    const printer = new StepPrinter(terminal, new Pictures(process.cwd()))
    for await (const event of session.stream(code, { ...options, signal })) {
      await printer.print(event)
      if (event.event === 'ended') return exitCodeOf(event.step)
    }
  } catch (error) {
    throw signal.aborted ? new Exit(interrupts.exitCode) : error
  }
  throw new AirlockError('server_unreachable', 'The stream ended before the step.')
}

function exitCodeOf(step: Pick<StepResult, 'status'>): number {
  return step.status === 'completed' ? 0 : 1
}

/** A step of its own before the program, so that its lines keep their numbers. */
async function setArguments(session: Session, argv: readonly string[], signal: AbortSignal): Promise<void> {
  const { status, error } = await session.run(ARGUMENTS[session.runtime](argv), { signal })
  if (status !== 'completed')
    throw new AirlockError('runtime_crashed', `The arguments could not be passed on: ${error?.message ?? status}.`)
}

const ARGUMENTS: Readonly<Record<Runtime, (argv: readonly string[]) => string>> = {
  python: (argv) => `__import__('sys').argv[:] = ${JSON.stringify(argv)}`,
  node: (argv) => `process.argv.splice(1, process.argv.length, ...${JSON.stringify(argv)}), undefined`,
  bash: ([name = '', ...rest]) => `BASH_ARGV0=${single(name)}; set -- ${rest.map(single).join(' ')}`,
}

function single(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}
