import { richLine, type RunStepBody, type Session, type Step, type StepError, type StepEvent } from '@airlock/contract'
import { newId } from '@airlock/std'
import { isUtf8 } from 'node:buffer'
import { spawn, type ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'

type Said = Extract<StepEvent, { event: 'output' | 'rich' }>

/**
 * For tests only: a step of `TestCore`. Whatever the runtime, its code is for bash and remembers nothing; what it writes to
 * fd 3 are rich lines.
 */
export class TestStep {
  readonly code: string
  readonly ended: Promise<void>
  state: Step
  readonly #child: ChildProcess
  readonly #said: Said[] = []
  readonly #changes = new EventEmitter()
  #cause: 'Interrupted' | 'Timeout' | undefined
  #error: StepError | null = null

  constructor(session: Session, root: string, body: RunStepBody) {
    this.code = body.code
    this.state = newStep(session, body.stepId)
    this.#changes.setMaxListeners(0)
    const env = { PATH: '/usr/local/bin:/usr/bin:/bin', ...body.env }
    // A group of its own, which is interrupted and killed as a whole.
    this.#child = spawn('bash', ['--norc', '-c', body.code], {
      cwd: root,
      env,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      detached: true,
    })
    this.#child.stdin?.on('error', () => {
      // Code need not read what it is given.
    })
    this.#child.stdin?.end(body.stdin)
    this.#child.stdout?.on('data', (bytes: Buffer) => this.#print('stdout', bytes))
    this.#child.stderr?.on('data', (bytes: Buffer) => this.#print('stderr', bytes))
    const rich = this.#child.stdio[3]
    if (rich instanceof Readable) createInterface({ input: rich }).on('line', (line) => this.#show(line))
    const timer = setTimeout(() => this.kill('Timeout'), body.timeoutMs)
    this.ended = once(this.#child, 'close').then(([exitCode]: (number | null)[]) => {
      clearTimeout(timer)
      this.#end(exitCode ?? null)
    })
  }

  interrupt(): void {
    this.#cause ??= 'Interrupted'
    this.#signal('SIGINT')
  }

  kill(cause: 'Interrupted' | 'Timeout' = 'Interrupted'): void {
    this.#cause ??= cause
    this.#signal('SIGKILL')
  }

  async *events(options: {
    readonly from: number
    readonly follow: boolean
    readonly signal: AbortSignal
  }): AsyncGenerator<StepEvent> {
    yield { event: 'started', step: this.state }
    for (let i = 0; ; i++) {
      while (i >= this.#said.length && this.state.status === 'running' && options.follow)
        await once(this.#changes, 'change', { signal: options.signal })
      const event = this.#said[i]
      if (!event) break
      if (event.offset > options.from) yield event
    }
    if (this.state.status !== 'running') yield { event: 'ended', step: this.state }
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined || this.state.status !== 'running') return
    try {
      process.kill(-pid, signal)
    } catch {
      // It has just ended.
    }
  }

  #print(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    const content = isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') }
    this.#say(bytes.length, (offset) => ({ event: 'output', stream, offset, ...content }))
  }

  #show(line: string): void {
    const said = richLine.parse(JSON.parse(line))
    if (said.kind === 'error') this.#error = said.error
    else this.#say(line.length + 1, (offset) => ({ event: 'rich', offset, output: said }))
  }

  #say(bytes: number, make: (offset: number) => Said): void {
    const outputBytes = this.state.outputBytes + bytes
    this.state = { ...this.state, outputBytes }
    this.#said.push(make(outputBytes))
    this.#changes.emit('change')
  }

  #end(exitCode: number | null): void {
    const failed = exitCode !== 0 || this.#error !== null
    const told = this.#error ?? { name: 'Failed', message: `ended with ${exitCode ?? 'a signal'}`, traceback: '' }
    const error = failed ? { ...told, name: this.#cause ?? told.name } : null
    const endedAt = new Date()
    this.state = {
      ...this.state,
      status: failed ? 'failed' : 'completed',
      error,
      cause: this.#cause === 'Timeout' ? 'timeout' : exitCode === null ? 'signal' : 'exit',
      restarted: this.#cause !== undefined && exitCode === null,
      endedAt: endedAt.toISOString(),
      durationMs: endedAt.getTime() - Date.parse(this.state.startedAt),
    }
    this.#changes.emit('change')
  }
}

function newStep(session: Session, stepId: string | undefined): Step {
  const id = newId('stp')
  return {
    id,
    stepId: stepId ?? id,
    session: session.id,
    sandbox: session.sandbox,
    status: 'running',
    error: null,
    cause: null,
    restarted: false,
    truncated: false,
    outputBytes: 0,
    startedAt: new Date().toISOString(),
    endedAt: null,
    durationMs: null,
    resourceUsage: null,
    provenance: { image: 'none', runtime: session.runtimeVersion, policyVersion: null },
  }
}
