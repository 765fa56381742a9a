import { chmod, mkdir, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { GuestListener } from './guest-listener.ts'

/** A socket in a directory that is bound into the sandbox, where only its root can enter. */
export class UnixListener implements GuestListener {
  readonly #directory: string
  #server: Server | undefined

  constructor(directory: string) {
    this.#directory = directory
  }

  async listen(accept: (connection: Duplex) => void): Promise<void> {
    const path = join(this.#directory, 'guest.sock')
    await mkdir(this.#directory, { recursive: true, mode: 0o711 })
    await rm(path, { force: true })
    const server = createServer(accept)
    this.#server = server
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
    // Who may come near it is decided by the directory.
    await chmod(path, 0o666)
  }

  async close(): Promise<void> {
    const server = this.#server
    if (server?.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
  }
}
