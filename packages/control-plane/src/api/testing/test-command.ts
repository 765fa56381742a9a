import { AirlockError, type Command, type CommandEvent, type RunCommandBody } from '@airlock/contract'
import { newId } from '@airlock/std'
import { spawn, type ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { isUtf8 } from 'node:buffer'

type Output = Extract<CommandEvent, { event: 'output' }>

/** For tests only: a command of `TestCore`, a process of this user with its output kept in memory. */
export class TestCommand {
  readonly ended: Promise<Command>
  state: Command
  readonly #child: ChildProcess
  readonly #output: Output[] = []
  readonly #changes = new EventEmitter()

  static async start(sandbox: string, root: string, body: RunCommandBody): Promise<TestCommand> {
    const argv = body.argv ?? ['/bin/sh', '-c', body.shell ?? '']
    const [file = '', ...args] = argv
    const env = { PATH: '/usr/local/bin:/usr/bin:/bin', ...body.env }
    const child = spawn(file, args, {
      cwd: root,
      env,
      stdio: body.stdin === undefined ? ['ignore', 'pipe', 'pipe'] : 'pipe',
    })
    await once(child, 'spawn').catch((cause: unknown) => {
      throw new AirlockError('executable_not_found', undefined, { cause })
    })
    if (typeof body.stdin === 'object') child.stdin?.end(body.stdin.text)
    child.stdin?.on('error', () => {
      // The process closed its stdin: what it does not read is lost, as in any pipe.
    })
    return new TestCommand(child, newCommand(sandbox, argv, body.cwd), body.timeoutMs)
  }

  private constructor(child: ChildProcess, state: Command, timeoutMs: number) {
    this.#child = child
    this.state = state
    this.#changes.setMaxListeners(0)
    child.stdout?.on('data', (bytes: Buffer) => this.#say('stdout', bytes))
    child.stderr?.on('data', (bytes: Buffer) => this.#say('stderr', bytes))
    let timedOut = false
    const timer = setTimeout(() => (timedOut = child.kill('SIGKILL')), timeoutMs)
    this.ended = once(child, 'close').then(([exitCode, signal]: (number | string | null)[]) => {
      clearTimeout(timer)
      this.#end({ exitCode: Number(exitCode ?? 0), signal: signal === null ? null : String(signal), timedOut })
      return this.state
    })
  }

  kill(signal: NodeJS.Signals): boolean {
    return this.state.state === 'running' && this.#child.kill(signal)
  }

  async write(input: { readonly bytes: AsyncIterable<Buffer>; readonly end: boolean }): Promise<void> {
    const { stdin } = this.#child
    if (this.state.state !== 'running') throw new AirlockError('command_ended')
    if (!stdin?.writable) throw new AirlockError('stdin_closed')
    for await (const chunk of input.bytes)
      if (!stdin.write(chunk)) await Promise.race([once(stdin, 'drain'), this.ended])
    if (input.end) stdin.end()
  }

  async *events(options: {
    readonly from: number
    readonly follow: boolean
    readonly signal: AbortSignal
  }): AsyncGenerator<CommandEvent> {
    yield { event: 'started', command: this.state }
    for (let i = 0; ; i++) {
      while (i >= this.#output.length && this.state.state === 'running' && options.follow)
        await once(this.#changes, 'change', { signal: options.signal })
      const event = this.#output[i]
      if (!event) break
      if (event.offset > options.from) yield event
    }
    if (this.state.state === 'exited') yield { event: 'ended', command: this.state }
  }

  #say(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    const offset = this.state.outputBytes + bytes.length
    this.state = { ...this.state, outputBytes: offset }
    const content = isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') }
    this.#output.push({ event: 'output', stream, offset, ...content })
    this.#changes.emit('change')
  }

  #end(how: { exitCode: number; signal: string | null; timedOut: boolean }): void {
    const endedAt = new Date()
    const durationMs = endedAt.getTime() - Date.parse(this.state.startedAt)
    const exitCode = how.signal === null ? how.exitCode : null
    const cause = how.timedOut ? 'timeout' : how.signal === null ? 'exit' : 'signal'
    const ended = { ...how, exitCode, cause, endedAt: endedAt.toISOString(), durationMs } as const
    this.state = { ...this.state, ...ended, state: 'exited' }
    this.#changes.emit('change')
  }
}

function newCommand(sandbox: string, argv: readonly string[], cwd: string): Command {
  return {
    id: newId('cmd'),
    sandbox,
    argv: [...argv],
    cwd,
    state: 'running',
    exitCode: null,
    signal: null,
    timedOut: false,
    cause: null,
    truncated: false,
    outputBytes: 0,
    fullOutput: null,
    startedAt: new Date().toISOString(),
    endedAt: null,
    durationMs: null,
  }
}
