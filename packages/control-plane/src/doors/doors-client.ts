import { AirlockError, type DoorName, isAirlockError, openDoors } from '@airlock/contract'
import { z } from 'zod'
import { DataPlaneHttp } from '../nodes/data-plane-http.ts'

const ANSWER_MS = 2_000
const nothing = z.strictObject({})

/** The calls at the doors of `contract/doors-api.ts`. Each may be made twice, and ends in bounded time. */
export class DoorsClient {
  readonly #http: DataPlaneHttp

  constructor(socketPath: string) {
    this.#http = new DataPlaneHttp(socketPath)
  }

  /** The sandboxes that have open doors. */
  async list(): Promise<readonly string[]> {
    return (await this.#ask('GET', '/doors', openDoors)).sandboxes
  }

  async open(sandbox: string, doors: readonly DoorName[]): Promise<void> {
    await this.#ask('PUT', `/doors/${sandbox}`, nothing, { doors })
  }

  async shut(sandbox: string): Promise<void> {
    await this.#ask('DELETE', `/doors/${sandbox}`, nothing)
  }

  close(): void {
    this.#http.close()
  }

  // oxlint-disable-next-line max-params -- a request reads best as one line
  async #ask<T>(method: 'GET' | 'PUT' | 'DELETE', path: string, schema: z.ZodType<T>, json?: unknown): Promise<T> {
    try {
      return await this.#http.json({ method, path, json, answerMs: ANSWER_MS, again: 'same' }, schema)
    } catch (error) {
      if (!isAirlockError(error) || error.code !== 'data_plane_unavailable') throw error
      throw new AirlockError('door_unavailable', undefined, { cause: error })
    }
  }
}
