import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, constants, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { GuestFailure } from '../failure.ts'
import type { PipeEnds } from './stdin-source.ts'

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants

/** Made ahead of need, for Node cannot make a FIFO itself and a process for each would cost milliseconds. */
const SPARE = 16
const REFILL_BELOW = 8

/** User code may open an output of its own again to write, not to read. */
const MODE = '0622'

/**
 * FIFOs for outputs of commands and steps. Node's own pipes are sockets, which `/dev/stdout` cannot open again; a FIFO can be. An
 * interpreter opens those of its step by name, and so could another session: names cannot be guessed, nor their directory be listed.
 */
export class FifoPool {
  readonly #directory: string
  readonly #mkfifo: readonly string[]
  readonly #paths: string[] = []
  #refilling: Promise<void> | undefined

  /** `mkfifo`: how that program is called here. */
  constructor(directory: string, mkfifo: readonly string[]) {
    this.#directory = directory
    this.#mkfifo = mkfifo
  }

  async take(count: number): Promise<readonly string[]> {
    while (this.#paths.length < count) await this.refill()
    const taken = this.#paths.splice(0, count)
    // A failure here is told to the next `take`, which tries again.
    if (this.#paths.length < REFILL_BELOW) void this.refill().catch(() => undefined)
    return taken
  }

  giveBack(paths: readonly string[]): void {
    this.#paths.push(...paths)
  }

  refill(): Promise<void> {
    this.#refilling ??= this.#make().finally(() => (this.#refilling = undefined))
    return this.#refilling
  }

  async #make(): Promise<void> {
    const paths = Array.from({ length: SPARE }, () => join(this.#directory, `output-${randomUUID()}`))
    const [program = '', ...before] = this.#mkfifo
    const child = spawn(program, [...before, '-m', MODE, '--', ...paths], { stdio: 'ignore', env: {} })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new GuestFailure('internal', `mkfifo ended with ${code}`)
    this.#paths.push(...paths)
  }
}

/** Opens both ends and removes the name. */
export function openFifo(path: string): PipeEnds {
  try {
    const ours = openSync(path, O_RDONLY | O_NONBLOCK)
    try {
      return { ours, theirs: openSync(path, O_WRONLY) }
    } catch (error) {
      closeSync(ours)
      throw error
    }
  } finally {
    unlinkSync(path)
  }
}
