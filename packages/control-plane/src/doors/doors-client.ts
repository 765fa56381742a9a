import {
  AirlockError,
  type DoorConfig,
  keysHealth,
  openDoors,
  type OpenDoors,
  type UpstreamHealth,
} from '@airlock/contract'
import { type Address, WireClient } from '@airlock/wire'
import { z } from 'zod'
import type { Doors } from '../nodes/doors.ts'

const ANSWER_MS = 2_000
/** The ids of more sandboxes than a node can have. */
const MAX_JSON_BYTES = 4 * 1024 * 1024
const nothing = z.strictObject({})

/** Doors of this host, by the calls of `contract/src/host/doors-api.ts` over a socket. */
export class DoorsClient implements Doors {
  readonly #http: WireClient

  constructor(address: Address) {
    this.#http = new WireClient({
      address,
      peer: 'doors',
      unavailable: (cause) => new AirlockError('door_unavailable', undefined, { cause }),
      maxJsonBytes: MAX_JSON_BYTES,
    })
  }

  async list(): Promise<readonly OpenDoors[]> {
    return (await this.#ask('GET', '/doors', openDoors)).sandboxes
  }

  async open(sandbox: string, doors: readonly DoorConfig[]): Promise<void> {
    await this.#ask('PUT', `/doors/${sandbox}`, nothing, { doors })
  }

  async shut(sandbox: string): Promise<void> {
    await this.#ask('DELETE', `/doors/${sandbox}`, nothing)
  }

  async upstreams(): Promise<readonly UpstreamHealth[]> {
    return (await this.#ask('GET', '/upstreams', keysHealth)).upstreams
  }

  close(): void {
    this.#http.close()
  }

  // oxlint-disable-next-line max-params -- a request reads best as one line
  async #ask<T>(method: 'GET' | 'PUT' | 'DELETE', path: string, schema: z.ZodType<T>, json?: unknown): Promise<T> {
    return this.#http.json({ method, path, json, answerMs: ANSWER_MS, again: 'same' }, schema)
  }
}
