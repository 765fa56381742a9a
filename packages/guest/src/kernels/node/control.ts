import { Session } from 'node:inspector'
import { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'
import type { DriverMessage, StepRequest } from '../../session/driver.ts'
import type { FromSteps, ToSteps } from './messages.ts'
import { prepareCode } from './prepare-code.ts'

const CHANNEL = 3

/** How long user code has to give way by itself: where it only waits, nothing needs to be torn down. */
const GRACE_MS = 100

/**
 * The thread of the channel. It has builtins of its own, which user code cannot patch, and it is never busy with user
 * code: what must be understood of a step is understood here.
 */
export class Control {
  readonly #port: MessagePort
  readonly #tell: (message: ToSteps) => void
  readonly #channel = new Socket({ fd: CHANNEL, readable: true, writable: true })
  readonly #mainThread = new Session()
  #pending: Buffer[] = []
  #steps = 0
  #running: string | undefined
  #interrupting: string | undefined
  /** A termination that has not hit yet would hit the next step: that one waits. */
  #terminating = false
  #waiting: ToSteps | undefined

  constructor(port: MessagePort) {
    this.#port = port
    const send = port.postMessage.bind(port)
    this.#tell = (message) => send(message)
  }

  start(): void {
    this.#mainThread.connectToMainThread()
    this.#port.on('message', (message: FromSteps) => this.#onMessage(message))
    this.#channel.on('data', (bytes: Buffer) => this.#onData(bytes))
    this.#channel.on('error', () => {
      // `close` follows.
    })
    // Nobody is left to work for; the main thread ends the process with us.
    this.#channel.on('close', () => process.exit(0))
  }

  #onMessage(message: FromSteps): void {
    if (message.type === 'ready') return this.#say({ type: 'ready', version: `Node.js ${process.version}` })
    if (message.type === 'rich') {
      this.#channel.write(`{"type":"rich","nonce":${JSON.stringify(message.nonce)},"line":${message.json}}\n`)
      return
    }
    if (message.nonce === this.#running) this.#running = undefined
    this.#say(message)
  }

  #say(message: DriverMessage): void {
    this.#channel.write(`${JSON.stringify(message)}\n`)
  }

  #onData(bytes: Buffer): void {
    const end = bytes.lastIndexOf(10)
    if (end < 0) {
      this.#pending.push(bytes)
      return
    }
    const text = Buffer.concat([...this.#pending, bytes.subarray(0, end)]).toString('utf8')
    this.#pending = [bytes.subarray(end + 1)]
    for (const line of text.split('\n')) this.#onLine(line)
  }

  #onLine(line: string): void {
    const request = parseRequest(line)
    if (request.type === 'interrupt') this.#interrupt(request.nonce)
    else this.#begin(request)
  }

  #begin({ code, ...request }: StepRequest): void {
    const name = `step-${++this.#steps}`
    this.#running = request.nonce
    const step: ToSteps = { ...request, name, prepared: prepareCode(code, name) }
    if (this.#terminating) this.#waiting = step
    else this.#tell(step)
  }

  #interrupt(nonce: string): void {
    if (nonce !== this.#running || nonce === this.#interrupting) return
    this.#interrupting = nonce
    this.#tell({ type: 'interrupt', nonce })
    setTimeout(() => this.#terminate(nonce), GRACE_MS)
  }

  /** Again and again, for what a termination hits may be the message that should end the step. */
  #terminate(nonce: string): void {
    if (nonce !== this.#running) return
    if (!this.#terminating) {
      this.#terminating = true
      this.#mainThread.post('Runtime.terminateExecution', () => this.#terminated())
    }
    this.#tell({ type: 'interrupt', nonce })
    setTimeout(() => this.#terminate(nonce), GRACE_MS)
  }

  #terminated(): void {
    this.#terminating = false
    if (this.#waiting) this.#tell(this.#waiting)
    this.#waiting = undefined
  }
}

/** The guest wrote it. */
function parseRequest(line: string): StepRequest | { readonly type: 'interrupt'; readonly nonce: string } {
  return JSON.parse(line) as StepRequest
}
