import { type IncomingMessage, request } from 'node:http'
import {
  AirlockError,
  type ControlCall,
  isAirlockError,
  isErrorCode,
  renewedToken,
  type RenewedToken,
  self,
  type Self,
} from '@airlock/contract'
import { z } from 'zod'
import { readJson } from './http.ts'

const ANSWER_MS = 5_000
const MAX_ANSWER = 64 * 1024

const refusal = z.object({ error: z.object({ code: z.string(), message: z.string() }) })
const answers = { self, heartbeat: self, renew: renewedToken } as const

/** Asks the control plane, on a connection of its own each time: what is asked is made here, word by word. */
export class ControlPlaneClient {
  readonly #socket: string

  constructor(socket: string) {
    this.#socket = socket
  }

  /** Fails closed: a control plane that does not answer in time, or not as agreed, has not allowed anything. */
  async ask(call: ControlCall): Promise<Self | RenewedToken> {
    try {
      const response = await this.#send(JSON.stringify(call))
      const value = await readJson(response, MAX_ANSWER)
      if (response.statusCode !== 200) throw refusalOf(value)
      return answers[call.ask].parse(value)
    } catch (cause) {
      if (isAirlockError(cause)) throw cause
      throw new AirlockError('not_ready', 'The server does not answer.', { cause })
    }
  }

  async #send(body: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const signal = AbortSignal.timeout(ANSWER_MS)
      const at = { socketPath: this.#socket, method: 'POST', path: '/control', agent: false, headers, signal } as const
      request(at, resolve).on('error', reject).end(body)
    })
  }
}

function refusalOf(value: unknown): AirlockError {
  const parsed = refusal.safeParse(value)
  if (!parsed.success || !isErrorCode(parsed.data.error.code)) return new AirlockError('internal')
  return new AirlockError(parsed.data.error.code, parsed.data.error.message)
}
