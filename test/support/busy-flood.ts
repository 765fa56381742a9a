import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { deadline, waitFor } from '@airlock/std'
import type { BusyCounts, BusyPlan } from './busy-callers.ts'

const PROGRAM = fileURLToPath(new URL('busy-callers.ts', import.meta.url))
const HANG_MS = 100_000
const SETTLED_MS = 500

/** Defaults: one address, and closed connections are replaced after 50 ms. */
export type Plan = Pick<BusyPlan, 'count' | 'texts' | 'mode'> & Partial<BusyPlan>

/** Addresses of loopback beside 127.0.0.1. */
export const OTHERS = Array.from({ length: 20 }, (_, at) => `127.0.0.${at + 2}`)

/** A process of its own that calls a server without end. */
export class BusyFlood {
  readonly #child: ChildProcess

  constructor(url: string, plan: Plan) {
    this.#child = fork(PROGRAM, { execArgv: [] })
    const whole: BusyPlan = { port: Number(new URL(url).port), from: ['127.0.0.1'], againMs: 50, ...plan }
    this.#child.send(whole)
  }

  async counts(): Promise<BusyCounts> {
    const answer = once(this.#child, 'message', { signal: deadline(HANG_MS) })
    this.#child.send('counts')
    const [counts] = (await answer) as [BusyCounts]
    return counts
  }

  async until(holds: (counts: BusyCounts) => boolean, everyMs = 20): Promise<BusyCounts> {
    const look = async (): Promise<BusyCounts | undefined> => {
      const counts = await this.counts()
      return holds(counts) ? counts : undefined
    }
    return waitFor(look, { signal: deadline(HANG_MS), everyMs })
  }

  /** Waits for an answer to the flood after this call: it still lasts. */
  async goesOn(): Promise<void> {
    const before = total(await this.counts())
    await this.until((counts) => total(counts) > before)
  }

  /** Waits until the server reads no more bytes of the flood. */
  async settled(): Promise<void> {
    let before = -1
    await this.until(({ sentBytes }) => {
      const isSettled = sentBytes > 0 && sentBytes === before
      before = sentBytes
      return isSettled
    }, SETTLED_MS)
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }
}

export function total({ answers }: BusyCounts): number {
  return Object.values(answers).reduce((sum, count) => sum + count, 0)
}

/** A request in HTTP/1.1, with a body if given. */
export function textOf(
  method: string,
  path: string,
  given: { readonly key?: string; readonly body?: unknown } = {},
): string {
  const body = given.body === undefined ? '' : JSON.stringify(given.body)
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: localhost',
    ...(given.key === undefined ? [] : [`authorization: Bearer ${given.key}`]),
    ...(path === '/mcp' ? ['accept: application/json, text/event-stream'] : []),
    ...(body === '' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

/** A message to `/mcp`. */
export function mcpText(key: string, method: string, params: object = {}): string {
  return textOf('POST', '/mcp', { key, body: { jsonrpc: '2.0', id: 1, method, params } })
}
