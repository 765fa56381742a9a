import { chmodSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import type { User } from '../as-user.ts'

const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 15_000
const ANSWER_MS = 10_000
const MAX_ANSWER = 16 * 1024

interface Token {
  readonly token: string
  readonly lifeMs: number
}

/**
 * The token of this sandbox: written where programs read it, and renewed at half of its life through the door that they
 * use too. One that is refused is not tried again, and one that ran out is left as it is: the door says so, and the host
 * gives another.
 */
export class DoorToken {
  readonly #dir: string
  readonly #user: User
  #timer: NodeJS.Timeout | undefined
  /** Counts the tokens: an answer for an older one is nobody's. */
  #turn = 0

  constructor(dir: string, user: User) {
    this.#dir = dir
    this.#user = user
    // A runtime may have made it for everybody to write to.
    chmodSync(dir, 0o755)
  }

  /** In place of the one before. Whoever reads the file sees one of them, whole. */
  take({ token, lifeMs }: Token): Record<string, never> {
    this.#link()
    this.#write(token)
    const turn = ++this.#turn
    this.#in(lifeMs / 2, turn, { token, diesAtMs: performance.now() + lifeMs, retryMs: FIRST_RETRY_MS })
    return {}
  }

  #in(ms: number, turn: number, current: Current): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#renew(turn, current), ms)
  }

  async #renew(turn: number, current: Current): Promise<void> {
    const answer = await askForToken(join(this.#dir, 'control', 'airlock.sock'), current.token)
    if (turn !== this.#turn || answer === 'refused') return
    if (answer !== 'unanswered') return void this.take(answer)
    if (performance.now() >= current.diesAtMs) return
    const retryMs = Math.min(current.retryMs * 2, LAST_RETRY_MS)
    this.#in(current.retryMs, turn, { ...current, retryMs })
  }

  /** Ours, and readable by the group of user code alone. Synchronous, for credentials belong to the whole process. */
  #write(token: string): void {
    const path = join(this.#dir, 'token')
    const fresh = `${path}.new`
    rmSync(fresh, { force: true })
    process.setegid?.(this.#user.gid)
    try {
      writeFileSync(fresh, `${token}\n`, { mode: 0o440, flag: 'wx' })
    } finally {
      process.setegid?.(0)
    }
    renameSync(fresh, path)
  }

  /** The door by the name that programs use. */
  #link(): void {
    try {
      symlinkSync('control/airlock.sock', join(this.#dir, 'airlock.sock'))
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || error.code !== 'EEXIST') throw error
    }
  }
}

interface Current {
  readonly token: string
  readonly diesAtMs: number
  readonly retryMs: number
}

/** A door that is not there, or has nobody behind it now, comes back: that is `unanswered`. */
async function askForToken(socketPath: string, token: string): Promise<Token | 'refused' | 'unanswered'> {
  const headers = { host: 'airlock', authorization: `Bearer ${token}`, 'content-length': 0 }
  const signal = AbortSignal.timeout(ANSWER_MS)
  const at = { socketPath, method: 'POST', path: '/v1/self/token', agent: false, headers, signal } as const
  return new Promise((resolve) => {
    const outgoing = request(at, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        if (text.length > MAX_ANSWER) response.destroy()
      })
      response.on('error', () => resolve('unanswered'))
      response.on('close', () => resolve(read(response.statusCode ?? 0, text)))
    })
    outgoing.on('error', () => resolve('unanswered'))
    outgoing.end()
  })
}

function read(status: number, text: string): Token | 'refused' | 'unanswered' {
  if (status === 401 || status === 403) return 'refused'
  try {
    const value: unknown = status === 200 ? JSON.parse(text) : undefined
    return isToken(value) ? { token: value.token, lifeMs: value.lifeMs } : 'unanswered'
  } catch {
    // Cut off on its way.
    return 'unanswered'
  }
}

function isToken(value: unknown): value is Token {
  if (typeof value !== 'object' || value === null || !('token' in value) || !('lifeMs' in value)) return false
  return typeof value.token === 'string' && typeof value.lifeMs === 'number' && value.lifeMs > 0
}
