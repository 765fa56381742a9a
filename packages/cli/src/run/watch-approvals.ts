import { Airlock, AirlockError, type Approval } from '@airlock/sdk'
import { setTimeout as delay } from 'node:timers/promises'
import { approvalFacts, operationText } from '../text/approval-text.ts'
import type { Context } from '../context.ts'
import { Interrupts } from './interrupts.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { renderFacts } from '../text/table.ts'
import type { Terminal } from '../text/terminal.ts'

const AGAIN_MS = 1000

interface WatchOptions {
  readonly agent: string | undefined
  readonly json: boolean
}

/** Shows asks until it is stopped. With keys at a terminal, as lines otherwise. */
export async function watchApprovals({ terminal }: Context, options: WatchOptions): Promise<number> {
  using interrupts = new Interrupts()
  const stop = new AbortController()
  interrupts.onAsked(() => stop.abort())
  const signal = AbortSignal.any([stop.signal, interrupts.stopped])
  const api = new Airlock({ role: 'admin' }).approvals
  const isAnswering = terminal.isTty && process.stdin.isTTY && !options.json
  const seen = isAnswering ? new AnswerDesk(terminal, api, () => stop.abort()) : new Lines(terminal, options.json)
  const show = async (): Promise<void> => {
    for await (const { approval } of api.watch({ agent: options.agent, signal })) await seen.show(approval)
  }
  try {
    while (!signal.aborted) {
      await show().catch((error: unknown) => throwUnlessOver(error, signal))
      // The server stopped, or the connection broke: what is pending is told again. Woken early by the stop alone.
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined)
    }
  } finally {
    seen.end()
  }
  return 0
}

/** What breaks a connection, as a server that restarts does, is not the end. */
function throwUnlessOver(error: unknown, signal: AbortSignal): void {
  if (signal.aborted || (error instanceof AirlockError && error.retryable)) return
  // What the runtime says when a body breaks off.
  if (error instanceof TypeError && error.message === 'terminated') return
  throw error
}

interface Seen {
  show(approval: Approval): Promise<void>
  end(): void
}

/** One line for each ask and each answer, told once. */
class Lines implements Seen {
  readonly #terminal: Terminal
  readonly #asJson: boolean
  readonly #told = new Map<string, string>()

  constructor(terminal: Terminal, asJson: boolean) {
    this.#terminal = terminal
    this.#asJson = asJson
  }

  async show(approval: Approval): Promise<void> {
    const { id, state, answeredBy, summary, decision } = approval
    if (this.#told.get(id) === state) return
    this.#told.set(id, state)
    if (state !== 'pending' && state !== 'approved') this.#told.delete(id)
    if (this.#asJson) return this.#terminal.printJson(approval, 'line')
    const by = answeredBy === null ? '' : ` by ${answeredBy}`
    await this.#terminal.print(sanitizeLine(`${id} ${state}${by} (${decision.risk}) ${summary}`))
  }

  end(): void {
    this.#told.clear()
  }
}

/** Asks the person at the keyboard, one ask after the other, with all of what is asked for. */
class AnswerDesk implements Seen {
  readonly #terminal: Terminal
  readonly #api: Airlock['approvals']
  readonly #leave: () => void
  readonly #waiting = new Map<string, Approval>()
  readonly #skipped = new Set<string>()
  #current: string | undefined
  #isBusy = false

  constructor(terminal: Terminal, api: Airlock['approvals'], leave: () => void) {
    this.#terminal = terminal
    this.#api = api
    this.#leave = leave
    process.stdin.setRawMode(true)
    process.stdin.on('data', this.#onKey).resume()
    terminal.note('Waiting for asks. q leaves.')
  }

  async show(approval: Approval): Promise<void> {
    const { id, state } = approval
    if (state === 'pending' && !this.#skipped.has(id)) this.#waiting.set(id, approval)
    else if (this.#waiting.delete(id) && this.#current === id) {
      this.#terminal.note(`It is ${state}${approval.answeredBy === null ? '' : ` by ${approval.answeredBy}`}.`)
      this.#current = undefined
    }
    await this.#next()
  }

  end(): void {
    process.stdin.off('data', this.#onKey).pause()
    process.stdin.setRawMode(false)
  }

  async #next(): Promise<void> {
    const [next] = this.#waiting.values()
    if (this.#current !== undefined || !next) return
    this.#current = next.id
    const detail = await this.#api.get(next.id)
    const facts = renderFacts(this.#terminal, approvalFacts(detail))
    await this.#terminal.print(`\n${facts}\n\n${operationText(detail.question.operation)}\n`)
    this.#terminal.note('a approves it once, r rejects it, s skips it, q leaves.')
  }

  readonly #onKey = (bytes: Buffer): void => {
    const key = bytes.toString('latin1')
    if (key === 'q' || key === '\u0003' || key === '\u0004') return this.#leave()
    const id = this.#current
    if (id === undefined || this.#isBusy || !['a', 'r', 's'].includes(key)) return
    this.#isBusy = true
    void this.#answer(id, key).finally(() => (this.#isBusy = false))
  }

  async #answer(id: string, key: string): Promise<void> {
    try {
      if (key === 's') this.#skipped.add(id)
      else this.#terminal.note(`${id} ${(await this.#api[key === 'a' ? 'approve' : 'reject'](id)).state}`)
    } catch (error) {
      this.#terminal.note(error instanceof AirlockError ? `${error.message} ${error.hint}` : String(error))
    }
    this.#waiting.delete(id)
    if (this.#current === id) this.#current = undefined
    await this.#next().catch((error: unknown) => this.#terminal.note(String(error)))
  }
}
