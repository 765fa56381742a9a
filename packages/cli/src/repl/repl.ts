import { AirlockError, type Runtime, type Sandbox, type Session, type StepOptions } from '@airlock/sdk'
import { createInterface, type Interface } from 'node:readline'
import { Exit, reportFailure } from '../failure.ts'
import type { Interrupts } from '../run/interrupts.ts'
import { OutputPrinter } from '../run/attach.ts'
import { Pictures } from '../text/pictures.ts'
import { StepPrinter } from '../run/step-printer.ts'
import type { Terminal } from '../text/terminal.ts'
import { complete } from './completion.ts'
import { History } from './history.ts'
import { isIncompleteBash } from './incomplete-bash.ts'
import { isIncompleteNode } from './incomplete-node.ts'
import { isIncompletePython } from './incomplete-python.ts'
import { KeyGate } from './key-gate.ts'
import { meaningOf } from './line-meaning.ts'

interface Language {
  readonly prompt: string
  readonly more: string
  readonly isIncomplete: (code: string) => boolean
}

const LANGUAGES: Readonly<Record<Runtime, Language>> = {
  python: { prompt: '>>> ', more: '... ', isIncomplete: isIncompletePython },
  node: { prompt: '> ', more: '... ', isIncomplete: isIncompleteNode },
  bash: { prompt: '$ ', more: '> ', isIncomplete: isIncompleteBash },
}

/** Lines that come this close together were pasted, and belong together. */
const PASTE_MS = 15
const HISTORY = 1000
const NO_STDIN = 'code at the prompt has no input to read. Set a variable instead, or run a file with --stdin.'
/** Ends that no further line can change. */
const OVER: ReadonlySet<string> = new Set([
  'session_expired',
  'session_not_found',
  'sandbox_ended',
  'guest_lost',
  'runtime_crashed',
  'server_unreachable',
])

/** A conversation with an interpreter until Ctrl-D. Answers the exit code. */
export class Repl {
  readonly #terminal: Terminal
  readonly #session: Session
  readonly #options: StepOptions
  readonly #interrupts: Interrupts
  readonly #language: Language
  readonly #history: History
  readonly #pictures = new Pictures(process.cwd())
  #leave: (exitCode: number | Promise<never>) => void = () => undefined
  #sandbox: Sandbox | undefined
  #lines: string[] = []
  #pasting: NodeJS.Timeout | undefined
  #isLeaving = false
  #isClosed = false

  constructor(
    terminal: Terminal,
    session: Session,
    { options, interrupts }: { readonly options: StepOptions; readonly interrupts: Interrupts },
  ) {
    this.#terminal = terminal
    this.#session = session
    this.#options = options
    this.#interrupts = interrupts
    this.#language = LANGUAGES[session.runtime]
    this.#history = new History(session.runtime)
  }

  async run(): Promise<number> {
    using gate = new KeyGate(process.stdin)
    const editor = createInterface({
      input: gate,
      output: process.stdout,
      terminal: true,
      history: this.#history.load(),
      historySize: HISTORY,
      completer: (line: string, done: (error: null, found: [string[], string]) => void) =>
        void this.#complete(line, done),
      removeHistoryDuplicates: true,
    })
    const left = new Promise<number>((resolve) => (this.#leave = resolve))
    const stop = (): void => this.#leave(fail(new Exit(this.#interrupts.exitCode)))
    this.#interrupts.stopped.addEventListener('abort', stop, { once: true })
    editor.on('line', (line) => this.#onLine(editor, gate, line))
    editor.on('SIGINT', () => this.#onCtrlC(editor))
    editor.once('close', () => {
      this.#isClosed = true
      this.#leave(0)
    })
    this.#prompt(editor)
    try {
      return await left
    } finally {
      clearTimeout(this.#pasting)
      editor.close()
      process.stdout.write('\n')
    }
  }

  /** Does nothing after Ctrl-D: keys typed during a step arrive when it ends. */
  #prompt(editor: Interface): void {
    if (this.#isClosed) return
    const { prompt, more } = this.#language
    editor.setPrompt(this.#terminal.style('cyan', this.#lines.length === 0 ? prompt : more))
    editor.prompt()
  }

  #onLine(editor: Interface, gate: KeyGate, line: string): void {
    clearTimeout(this.#pasting)
    this.#isLeaving = false
    this.#lines.push(line)
    this.#history.add(line)
    const code = this.#lines.join('\n')
    if (this.#language.isIncomplete(code)) return this.#prompt(editor)
    this.#pasting = setTimeout(() => {
      this.#lines = []
      this.#submit(editor, gate, code).catch((error: unknown) => {
        if (!this.#isClosed) this.#leave(fail(error))
      })
    }, PASTE_MS)
  }

  async #submit(editor: Interface, gate: KeyGate, code: string): Promise<void> {
    if (code.trim() === '') return this.#prompt(editor)
    const meaning = meaningOf(this.#session.runtime, code)
    if (meaning?.kind === 'leave') return this.#leave(meaning.exitCode)
    let asked = 0
    const ofShell = new AbortController()
    gate.close(() => (meaning ? ofShell.abort() : this.#interrupt(++asked)))
    try {
      await (meaning ? this.#runShell(meaning.line, ofShell.signal) : this.#run(code))
    } finally {
      gate.open()
    }
    this.#prompt(editor)
  }

  async #run(code: string): Promise<void> {
    const printer = new StepPrinter(this.#terminal, this.#pictures, NO_STDIN)
    const signal = this.#interrupts.stopped
    try {
      for await (const event of this.#session.stream(code, { ...this.#options, signal })) await printer.print(event)
    } catch (error) {
      if (signal.aborted || !(error instanceof AirlockError) || OVER.has(error.code)) throw error
      reportFailure(this.#terminal, error)
    }
  }

  async #complete(line: string, done: (error: null, found: [string[], string]) => void): Promise<void> {
    done(null, await complete(this.#session, line))
  }

  /** A command beside the interpreter; Ctrl-C ends it. */
  async #runShell(line: string, interrupted: AbortSignal): Promise<void> {
    const { stopped: signal } = this.#interrupts
    const { timeoutMs } = this.#options
    try {
      this.#sandbox ??= await this.#session.sandbox(signal)
      const command = await this.#sandbox.start(
        { shell: line },
        { ...(timeoutMs === undefined ? {} : { timeoutMs }), signal },
      )
      const kill = (): void => void command.signal('SIGKILL').catch(() => undefined)
      interrupted.addEventListener('abort', kill, { once: true })
      if (interrupted.aborted) kill()
      const printer = new OutputPrinter(this.#terminal)
      for await (const event of command.events({ signal })) await printer.print(event)
      await printer.finish()
    } catch (error) {
      if (signal.aborted || !(error instanceof AirlockError) || OVER.has(error.code)) throw error
      reportFailure(this.#terminal, error)
    }
  }

  /** The first asks the code, as Ctrl-C does; what does not listen to that can be given up. */
  #interrupt(times: number): void {
    const failed = (error: unknown): void => void reportFailure(this.#terminal, error)
    if (times === 1) this.#session.interrupt().catch(failed)
    else if (times === 2) this.#terminal.note('It still runs. Ctrl-C once more starts the interpreter anew.')
    else if (times === 3) this.#session.restart().catch(failed)
  }

  /** At a prompt: forgets what was typed; where there is nothing to forget, the second one leaves. */
  #onCtrlC(editor: Interface): void {
    const isEmpty = this.#lines.length === 0 && editor.line === ''
    if (isEmpty && this.#isLeaving) return editor.close()
    this.#isLeaving = isEmpty
    this.#lines = []
    clearTimeout(this.#pasting)
    process.stdout.write(isEmpty ? '\n(Ctrl-C again or Ctrl-D leaves)\n' : '\n')
    Object.assign(editor, { line: '', cursor: 0 })
    this.#prompt(editor)
  }
}

async function fail(error: unknown): Promise<never> {
  throw error
}
