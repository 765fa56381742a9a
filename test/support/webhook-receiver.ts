import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { deadline, waitFor } from '@airlock/std'

export interface Delivery {
  readonly path: string
  readonly signature: string
  readonly body: string
}

/** A receiver as a customer has it. What it answers is told by the test. */
export class Receiver {
  readonly taken: Delivery[] = []
  answer: (response: ServerResponse, request: IncomingMessage) => void = (response) => void response.end('ok')
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const signature = String(request.headers['airlock-signature'])
        this.taken.push({ path: request.url ?? '', signature, body: Buffer.concat(chunks).toString() })
        this.answer(response, request)
      })
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  }

  async has(count: number): Promise<readonly Delivery[]> {
    return waitFor(() => (this.taken.length >= count ? this.taken : undefined), {
      signal: deadline(40_000),
      everyMs: 20,
    })
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** As a customer checks it: over the time and the body, by the secret. */
export function isSigned({ signature, body }: Delivery, secret: string): boolean {
  const [, at = '', given = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? []
  return given === createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')
}
