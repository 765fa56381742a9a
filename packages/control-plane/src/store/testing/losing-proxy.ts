import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

const COMMIT = Buffer.from('commit\0')

/** A way to PostgreSQL on which the answer to a commit can be lost: PostgreSQL has done it, and its client hears that the connection broke. */
export class LosingProxy {
  /** How many answers are still to be lost. */
  toLose = 0
  /** How many were. */
  lost = 0
  readonly #server: Server
  readonly #to: URL
  readonly #sockets = new Set<Socket>()

  private constructor(url: string) {
    this.#to = new URL(url)
    this.#server = createServer((client) => this.#join(client))
  }

  static async start(url: string): Promise<LosingProxy> {
    const proxy = new LosingProxy(url)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get url(): string {
    const address = this.#server.address()
    const url = new URL(this.#to)
    url.port = String(typeof address === 'object' ? address?.port : '')
    return url.href
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #join(client: Socket): void {
    const server = connect(Number(this.#to.port), this.#to.hostname)
    let isCommitting = false
    client.on('data', (bytes) => {
      isCommitting = Buffer.from(bytes).includes(COMMIT)
      server.write(bytes)
    })
    server.on('data', (bytes) => {
      if (!isCommitting || this.toLose === 0) return void client.write(bytes)
      this.toLose--
      this.lost++
      client.destroy()
    })
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one)
      // Whoever breaks off takes the other along.
      one.on('error', () => other.destroy())
      one.on('close', () => {
        this.#sockets.delete(one)
        other.destroy()
      })
    }
  }
}
