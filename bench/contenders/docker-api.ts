import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Readable } from 'node:stream'

const STREAM_HEADER_BYTES = 8

/** The few calls of the Docker Engine API that a user of sandboxes would make, over its unix socket. */
export class DockerApi {
  readonly #socketPath: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  async version(): Promise<string> {
    return stringField(await this.#json('GET', '/version'), 'Version')
  }

  /** As `docker import` does it. */
  async importImage(name: string, tar: Readable): Promise<void> {
    const response = await this.#send('POST', `/images/create?fromSrc=-&repo=${name}`, tar)
    const said = (await buffer(response)).toString()
    if (response.statusCode !== 200 || said.includes('"error"')) throw new TypeError(`docker import: ${said}`)
  }

  async removeImage(name: string): Promise<void> {
    await this.#json('DELETE', `/images/${name}?force=true`)
  }

  async create(body: object): Promise<string> {
    return stringField(await this.#json('POST', '/containers/create', body), 'Id')
  }

  async start(container: string): Promise<void> {
    await this.#json('POST', `/containers/${container}/start`)
  }

  async pid(container: string): Promise<number> {
    const found = await this.#json('GET', `/containers/${container}/json`)
    const state = found['State']
    return typeof state === 'object' && state !== null && 'Pid' in state ? Number(state.Pid) : 0
  }

  /** Runs a program in it and answers its stdout. */
  async exec(container: string, argv: readonly string[]): Promise<string> {
    const body = { AttachStdout: true, AttachStderr: true, Cmd: argv }
    const id = stringField(await this.#json('POST', `/containers/${container}/exec`, body), 'Id')
    const response = await this.#send('POST', `/exec/${id}/start`, { Detach: false, Tty: false })
    return stdoutOf(await buffer(response))
  }

  async pause(container: string): Promise<void> {
    await this.#json('POST', `/containers/${container}/pause`)
  }

  async unpause(container: string): Promise<void> {
    await this.#json('POST', `/containers/${container}/unpause`)
  }

  async remove(container: string): Promise<void> {
    await this.#json('DELETE', `/containers/${container}?force=true&v=true`)
  }

  close(): void {
    this.#agent.destroy()
  }

  async #json(method: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const response = await this.#send(method, path, body)
    const text = (await buffer(response)).toString()
    if ((response.statusCode ?? 500) >= 400) throw new TypeError(`Docker, ${method} ${path}: ${text.trim()}`)
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  }

  async #send(method: string, path: string, body?: object | Readable): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = request({ socketPath: this.#socketPath, agent: this.#agent, method, path }, resolve)
      outgoing.on('error', reject)
      if (body === undefined) return outgoing.end()
      if ('pipe' in body) return body.pipe(outgoing)
      outgoing.setHeader('content-type', 'application/json')
      return outgoing.end(JSON.stringify(body))
    })
  }
}

/** Output without a terminal comes in frames: the stream, three zeros, the length, the bytes. */
function stdoutOf(frames: Buffer): string {
  const parts: Buffer[] = []
  for (let at = 0; at + STREAM_HEADER_BYTES <= frames.length;) {
    const end = at + STREAM_HEADER_BYTES + frames.readUInt32BE(at + 4)
    if (frames[at] === 1) parts.push(frames.subarray(at + STREAM_HEADER_BYTES, end))
    at = end
  }
  return Buffer.concat(parts).toString()
}

function stringField(value: Readonly<Record<string, unknown>>, name: string): string {
  const field = value[name]
  if (typeof field !== 'string') throw new TypeError(`Docker answered without ${name}.`)
  return field
}
