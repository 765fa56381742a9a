import { AirlockError, type ControlCall, renewedToken, type RenewedToken, self, type Self } from '@airlock/contract'
import { WireClient } from '@airlock/wire'
import { z } from 'zod'

const ANSWER_MS = 5_000
const MAX_ANSWER = 64 * 1024

const answers = { self, heartbeat: self, renew: renewedToken } as const

/** Asks the control plane, on a connection of its own each time: what is asked is made here, word by word. */
export class ControlPlaneClient {
  readonly #http: WireClient

  constructor(socket: string) {
    this.#http = new WireClient({
      address: { unix: socket },
      peer: 'control plane',
      unavailable: silent,
      maxJsonBytes: MAX_ANSWER,
    })
  }

  /** Fails closed: a control plane that does not answer in time, or not as agreed, has not allowed anything. */
  async ask(call: ControlCall): Promise<Self | RenewedToken> {
    const asked = { method: 'POST', path: '/control', json: call, answerMs: ANSWER_MS, again: 'different' } as const
    const parsed = answers[call.ask].safeParse(await this.#http.json(asked, z.unknown()))
    if (parsed.success) return parsed.data
    // To a program inside it is the same: nobody has allowed anything, and it may ask again.
    throw silent(parsed.error)
  }
}

function silent(cause: unknown): AirlockError {
  return new AirlockError('not_ready', 'The server does not answer.', { cause })
}
