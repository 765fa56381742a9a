import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import type { DriverMessage, DriverRichLine, Kernel } from '../../session/driver.ts'

export interface DriverStep {
  readonly code: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
}

export interface DriverAnswer {
  readonly status: 'completed' | 'failed' | 'crashed'
  readonly stdout: string
  readonly stderr: string
  readonly rich: readonly DriverRichLine[]
}

interface Waiting {
  readonly nonce: string
  readonly rich: DriverRichLine[]
  readonly end: (status: DriverAnswer['status']) => void
}

/** A driver by itself, without the engine: what it says on its channel is what a test sees. */
export class DriverProcess {
  readonly #kernel: Kernel
  readonly #child: ChildProcess
  readonly #channel: Duplex
  readonly #directory = mkdtempSync(join(tmpdir(), 'airlock-driver-'))
  readonly #ready = Promise.withResolvers<string>()
  readonly #exited: Promise<unknown>
  #waiting: Waiting | undefined
  #steps = 0

  constructor(kernel: Kernel, kernels: string) {
    this.#kernel = kernel
    const [program = '', ...args] = kernel.argv({ kernels, node: [process.execPath] })
    this.#child = spawn(program, args, {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      detached: true,
      cwd: this.#directory,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.#directory, LANG: 'C.UTF-8', ...kernel.env },
    })
    this.#channel = parseChannel(this.#child.stdio[3])
    this.#channel.on('error', () => {
      // The exit says it.
    })
    createInterface({ input: this.#channel })
      .on('line', (line) => this.#onLine(line))
      .on('error', () => {
        // The exit says it.
      })
    this.#exited = once(this.#child, 'exit').then(() => this.#waiting?.end('crashed'))
  }

  get directory(): string {
    return this.#directory
  }

  /** What it calls itself. */
  ready(): Promise<string> {
    return this.#ready.promise
  }

  async run(step: DriverStep): Promise<DriverAnswer> {
    await this.#ready.promise
    const at = join(this.#directory, `step-${this.#steps++}`)
    const paths = { stdin: `${at}.in`, stdout: `${at}.out`, stderr: `${at}.err` }
    writeFileSync(paths.stdin, step.stdin ?? '')
    execFileSync('/usr/bin/mkfifo', [paths.stdout, paths.stderr])
    const [stdout, stderr] = [collect(paths.stdout), collect(paths.stderr)]
    const nonce = randomBytes(16).toString('hex')
    const request = { type: 'step', nonce, code: step.code, env: step.env ?? {}, ...paths } as const
    const ended = Promise.withResolvers<DriverAnswer['status']>()
    this.#waiting = { nonce, rich: [], end: ended.resolve }
    const { rich } = this.#waiting
    this.#channel.write(`${this.#kernel.encodeStep(request)}\n`)
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) ended.resolve('crashed')
    const status = await ended.promise
    this.#waiting = undefined
    return { status, stdout: await stdout.take(), stderr: await stderr.take(), rich }
  }

  interrupt(): void {
    const { encode, signal } = this.#kernel.interrupt
    if (encode && this.#waiting) this.#channel.write(`${encode(this.#waiting.nonce)}\n`)
    if (signal) this.signalGroup('SIGINT')
  }

  signalGroup(signal: NodeJS.Signals): void {
    try {
      process.kill(-(this.#child.pid ?? Number.NaN), signal)
    } catch {
      // It is gone.
    }
  }

  async end(): Promise<void> {
    this.signalGroup('SIGKILL')
    await this.#exited
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** As the guest does: what is not a message is the end of the driver. */
  #onLine(line: string): void {
    try {
      this.#take(parseLine(line))
    } catch {
      this.signalGroup('SIGKILL')
    }
  }

  #take(message: DriverMessage): void {
    if (message.type === 'ready') this.#ready.resolve(message.version)
    else if (message.nonce !== this.#waiting?.nonce) return
    else if (message.type === 'rich') this.#waiting.rich.push(message.line)
    else this.#waiting.end(message.status)
  }
}

/** Reads a FIFO from now on; `take` gives what is in it at that moment, as the guest does at `done`. */
function collect(path: string): { take(): Promise<string> } {
  const socket = new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), writable: false })
  const chunks: Buffer[] = []
  socket.on('data', (bytes) => chunks.push(bytes))
  socket.on('error', () => {
    // What came is what there is.
  })
  return {
    async take() {
      let size = -1
      while (size !== chunks.length) {
        size = chunks.length
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      socket.destroy()
      return Buffer.concat(chunks).toString()
    },
  }
}

function parseChannel(stream: unknown): Duplex {
  return stream as Duplex
}

function parseLine(line: string): DriverMessage {
  return JSON.parse(line) as DriverMessage
}
