import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { CALL_HEADERS, KEYS_LIFE_FILE, type KeysHealth, type Reservation, signReservation } from '@airlock/contract'
import { COMPILED } from '../../../../test/support/compiled.ts'
import { memoryDir } from '../../../../test/support/memory-dir.ts'
import type { KeysConfig } from '../config.ts'
import { aReservation, signingKeys } from './reservations.ts'

/** A uid that nothing else on the machine has. */
export const UID = 1_879_048_192 + 5
const MAIN = new URL('../../../../dist/keys/main.js', import.meta.url).pathname

type UpstreamConfig = KeysConfig['upstreams'][string]

/** The answer to a call. */
export interface Called {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** The trailer; undefined when the answer broke off. */
  readonly end: string | undefined
}

/** A real `keys` in a directory of its own, started as the supervisor starts it. Ends and leaves with `using`. */
export class KeysProcess implements AsyncDisposable {
  readonly home = mkdtempSync(join(memoryDir(), 'airlock-keys-'))
  readonly socket = join(this.home, 'keys.sock')
  readonly signing = signingKeys()
  readonly #upstreams: Readonly<Record<string, UpstreamConfig>>
  #child: ChildProcess | undefined
  /** Addresses that are not public and may be dialled for tools. */
  listed: KeysConfig['listed'] = []
  stderr = ''

  constructor(upstreams: Readonly<Record<string, Partial<UpstreamConfig> & { readonly port: number }>>) {
    chmodSync(this.home, 0o755)
    for (const dir of ['public', 'keys', 'seal']) mkdirSync(join(this.home, dir))
    if (isRoot()) chownSync(join(this.home, 'seal'), UID, UID)
    writeFileSync(join(this.home, 'public/node'), 'here')
    writeFileSync(join(this.home, 'public/reservation.pub'), this.signing.publicPem)
    this.#upstreams = Object.fromEntries(
      Object.entries(upstreams).map(([name, { port, ...changes }]) => [name, this.#upstream(name, port, changes)]),
    )
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get life(): string {
    return readFileSync(join(this.home, 'public', KEYS_LIFE_FILE), 'utf8')
  }

  keyFile(upstream: string): string {
    return join(this.home, 'keys', `${upstream}.key`)
  }

  /** Replaces the copy of a key as the supervisor does. */
  writeKey(upstream: string, key: string): void {
    const fresh = `${this.keyFile(upstream)}.new`
    writeFileSync(fresh, key, { mode: 0o400 })
    if (isRoot()) chownSync(fresh, UID, UID)
    renameSync(fresh, this.keyFile(upstream))
  }

  /** `exec` is what runs it, if not Node itself. */
  async start(
    env: Readonly<Record<string, string>> = {},
    exec: { readonly execPath?: string; readonly execArgv?: string[] } = {},
  ): Promise<void> {
    const config: KeysConfig = {
      publicDir: join(this.home, 'public'),
      socket: this.socket,
      socketUid: null,
      sealKeyFile: join(this.home, 'seal', 'seal.key'),
      listed: this.listed,
      upstreams: this.#upstreams,
      drop: isRoot() ? { uid: UID, gid: UID } : null,
      logLevel: 'debug',
      failpoint: null,
    }
    const child = fork(MAIN, {
      ...exec,
      silent: true,
      env: { ...COMPILED, ...env, PATH: '', AIRLOCK_PROCESS: JSON.stringify(config) },
    })
    child.stderr?.on('data', (text: Buffer) => (this.stderr += text.toString()))
    this.#child = child
    await Promise.race([once(child, 'message'), exitOf(child).then(() => Promise.reject(new TypeError(this.stderr)))])
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    if (this.#child) await exitOf(this.#child)
  }

  sign(changes: Partial<Reservation> = {}): string {
    return signReservation(aReservation({ life: this.life, ...changes }), this.signing.privateKey)
  }

  /** Sends a call as the doors do, and reads all of its answer. */
  async call(body: object, reservation: Partial<Reservation> | string = {}): Promise<Called> {
    return readCalled(await this.open(body, reservation))
  }

  /** The answer as soon as it begins: whoever asks reads it. */
  async open(
    body: object,
    reservation: Partial<Reservation> | string = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<IncomingMessage> {
    const bytes = Buffer.from(JSON.stringify(body))
    const text = typeof reservation === 'string' ? reservation : this.sign(reservation)
    const outgoing = request({
      socketPath: this.socket,
      agent: false,
      method: 'POST',
      path: '/call',
      headers: {
        'content-type': 'application/json',
        'content-length': bytes.length,
        [CALL_HEADERS.reservation]: text,
        ...headers,
      },
    })
    outgoing.end(bytes)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    return response
  }

  async health(): Promise<KeysHealth> {
    const outgoing = request({ socketPath: this.socket, agent: false, path: '/health' }).end()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    return JSON.parse((await readCalled(response)).body) as KeysHealth
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child?.connected) this.#child.send({ type: 'stop', mode: 'end' })
    if (this.#child) await exitOf(this.#child)
    rmSync(this.home, { recursive: true, force: true })
  }

  #upstream(name: string, port: number, changes: Partial<UpstreamConfig>): UpstreamConfig {
    return {
      kind: 'openai',
      origin: `http://127.0.0.1:${port}`,
      path: '/v1',
      keyFile: this.keyFile(name),
      models: ['gpt-5'],
      connectMs: 10_000,
      firstByteMs: 100_000,
      readMs: 100_000,
      maxConcurrent: 8,
      ...changes,
    }
  }
}

export async function readCalled(response: IncomingMessage): Promise<Called> {
  let body = ''
  let end: string | undefined
  try {
    for await (const chunk of response.setEncoding('latin1')) body += String(chunk)
    end = response.trailers[CALL_HEADERS.end]
  } catch {
    // The answer broke off: the bytes before that count.
  }
  return { status: response.statusCode ?? 0, headers: response.headers, body, end }
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
