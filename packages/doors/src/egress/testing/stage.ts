import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CloseNetworkCall, OpenNetworkCall } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { expect } from 'vitest'
import { type DnsServer, startDns } from '../../../../../test/support/dns-server.ts'
import type { EgressSettings } from '../../config.ts'
import type { Door } from '../../doors.ts'
import { egressDoor } from '../egress-door.ts'

const SANDBOX = 'sbx_0000000000aaaaaaaaaaaaaaaa'

/** A door with a DNS server and one upstream on loopback, and a scripted control plane. */
export class Stage {
  readonly dns: DnsServer
  /** Bytes that the upstream received, one entry per connection. */
  readonly received: Buffer[] = []
  readonly sockets: Socket[] = []
  readonly asked: OpenNetworkCall[] = []
  readonly ended: CloseNetworkCall[] = []
  isRaw = false
  /** Called with each connection of the upstream. */
  serve: (socket: Socket) => void = () => {}
  readonly #dir = mkdtempSync(join(tmpdir(), 'airlock-egress-'))
  readonly #upstream: Server
  #door: Door | undefined

  static async start(settings: Partial<EgressSettings> = {}): Promise<Stage> {
    const dns = await startDns()
    dns.names.set('example.com', ['127.0.0.1'])
    const stage = new Stage(dns)
    await stage.#open(settings)
    return stage
  }

  private constructor(dns: DnsServer) {
    this.dns = dns
    this.#upstream = createServer({ allowHalfOpen: true }, (socket) => {
      const at = this.sockets.push(socket) - 1
      this.received[at] = Buffer.alloc(0)
      socket.on('data', (chunk) => (this.received[at] = Buffer.concat([this.received[at] ?? Buffer.alloc(0), chunk])))
      socket.on('error', () => {})
      socket.on('end', () => socket.end())
      this.serve(socket)
    })
  }

  get port(): number {
    return (this.#upstream.address() as AddressInfo).port
  }

  /** As a client names the upstream. */
  get target(): string {
    return `example.com:${this.port}`
  }

  /** All bytes that the upstream received. */
  get got(): Buffer {
    return Buffer.concat(this.received)
  }

  async close(): Promise<void> {
    await this.#door?.close()
    this.dns.close()
    for (const socket of this.sockets) socket.destroy()
    this.#upstream.close()
    rmSync(this.#dir, { recursive: true })
  }

  dial(): Socket {
    const socket = connect({ path: join(this.#dir, 'egress.sock'), allowHalfOpen: true })
    socket.on('error', () => {})
    return socket
  }

  /** Sends bytes and reads until the door closes the connection. */
  async talk(bytes: string | Buffer): Promise<string> {
    const socket = this.dial()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    socket.on('end', () => socket.end())
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    await once(socket, 'close')
    return text
  }

  /** A promised tunnel. `read` is what came behind the promise. */
  async tunnel(): Promise<{ readonly socket: Socket; readonly closed: Promise<unknown>; readonly read: () => Buffer }> {
    const socket = this.dial()
    const closed = once(socket, 'close')
    let bytes = Buffer.alloc(0)
    socket.on('end', () => socket.end())
    socket.on('data', (chunk: Buffer) => (bytes = Buffer.concat([bytes, chunk])))
    socket.write(`CONNECT ${this.target} HTTP/1.1\r\nHost: ${this.target}\r\n\r\n`)
    await expect.poll(() => bytes.toString('latin1')).toMatch(/^HTTP\/1.1 200 [^\r]*\r\n\r\n/)
    bytes = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)
    return { socket, closed, read: () => bytes }
  }

  async #open(settings: Partial<EgressSettings>): Promise<void> {
    await new Promise<void>((resolve) => this.#upstream.listen(0, '127.0.0.1', resolve))
    const log = createLog({ process: 'doors', level: 'silent', write: () => {} })
    const bounds = { bitsPerSecond: 1e9, connections: 16, bytes: 1e9, idleMs: 60_000, totalMs: 60_000 }
    const listed = [{ address: '127.0.0.1', port: this.port }]
    const controlPlane = {
      openConnection: async (call: OpenNetworkCall) => {
        this.asked.push(call)
        return { connection: `con_${this.asked.length}`, raw: this.isRaw }
      },
      closeConnection: async (end: CloseNetworkCall) => void this.ended.push(end),
    }
    this.#door = await egressDoor({
      controlPlane,
      settings: { resolvers: [this.dns.address], listed, ...bounds, ...settings },
      log,
    })({ sandbox: SANDBOX, dir: this.#dir, config: { door: 'egress', version: '1' } })
  }
}
