import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { FromUpstream, Seen, ToUpstream, UpstreamStep } from './model-upstream-program.ts'

export type { UpstreamStep } from './model-upstream-program.ts'

const PROGRAM = fileURLToPath(new URL('model-upstream-program.ts', import.meta.url))

/** A provider of models in a process of its own. Ends with `using`. */
export class ModelUpstream implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly port: number

  /** With a certificate and its key it speaks TLS. */
  static async start(tls?: { readonly cert: string; readonly key: string }): Promise<ModelUpstream> {
    const child = fork(PROGRAM, tls ? [tls.cert, tls.key] : [], {
      env: {},
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const message = await hear(child)
    if (message.type !== 'listening') throw new TypeError('the upstream does not listen')
    return new ModelUpstream(child, message.port)
  }

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  /** Sets the script of the next request that has none. Without a script the answer is a small JSON. */
  async next(...steps: readonly UpstreamStep[]): Promise<void> {
    const noted = hear(this.#child)
    this.#tell({ type: 'next', steps })
    await noted
  }

  /** Lets it go on from a `wait`. */
  say(word: string): void {
    this.#tell({ type: 'say', word })
  }

  /** All that it got so far. */
  async seen(): Promise<Seen> {
    const answer = hear(this.#child)
    this.#tell({ type: 'seen' })
    const message = await answer
    if (message.type !== 'seen') throw new TypeError('the upstream does not answer')
    return message.seen
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #tell(message: ToUpstream): void {
    this.#child.send(message)
  }
}

async function hear(child: ChildProcess): Promise<FromUpstream> {
  const [message] = (await once(child, 'message')) as [FromUpstream]
  return message
}

/** The bytes of an answer with a length. */
export function answerOf(status: string, body: string, headers: readonly string[] = []): UpstreamStep {
  const lines = [`HTTP/1.1 ${status}`, ...headers, `content-length: ${Buffer.byteLength(body)}`]
  return { send: `${lines.join('\r\n')}\r\n\r\n${body}` }
}

/** The head of a stream, and one chunk of it. */
export const STREAM_HEAD: UpstreamStep = {
  send: 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n',
}
export function chunkOf(text: string): { readonly send: string } {
  return { send: `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n` }
}
export const STREAM_END: UpstreamStep = { send: '0\r\n\r\n' }
