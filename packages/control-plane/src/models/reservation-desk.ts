import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  AirlockError,
  KEYS_LIFE_FILE,
  ORDER_LIFE_MS,
  type Reservation,
  RESERVATION_KEY_FILE,
  RESERVATION_LIFE_MS,
  signReservation,
  signToolOrder,
  type ToolOrder,
} from '@airlock/contract'
import { openSigningKey, replaceFile } from '../sandboxes/signing-key.ts'

/** Signs reservations of model calls. The process `keys` knows only the public half. */
export class ReservationDesk {
  readonly #key: KeyObject
  readonly #publicDir: string

  constructor(key: KeyObject, publicDir: string) {
    this.#key = key
    this.#publicDir = publicDir
  }

  async publish(): Promise<void> {
    const pem = createPublicKey(this.#key).export({ type: 'spki', format: 'pem' })
    await replaceFile(join(this.#publicDir, RESERVATION_KEY_FILE), { text: String(pem), mode: 0o644 })
  }

  /** For one call, good for a minute, and for this life of `keys` alone. */
  async issue(what: Omit<Reservation, 'life' | 'expiresAt'>, now: number): Promise<string> {
    return signReservation({ ...what, life: await this.#life(), expiresAt: now + RESERVATION_LIFE_MS }, this.#key)
  }

  /** For one call of a tool, good for a second, and for this life of `keys` alone. */
  async order(what: Omit<ToolOrder, 'life' | 'expiresAt'>, now: number): Promise<string> {
    return signToolOrder({ ...what, life: await this.#life(), expiresAt: now + ORDER_LIFE_MS }, this.#key)
  }

  async #life(): Promise<string> {
    try {
      return await readFile(join(this.#publicDir, KEYS_LIFE_FILE), 'utf8')
    } catch (cause) {
      throw new AirlockError('upstream_unavailable', 'The process that holds the keys is not up yet.', { cause })
    }
  }
}

export async function openReservationDesk(stateDir: string, publicDir: string): Promise<ReservationDesk> {
  return new ReservationDesk(await openSigningKey(join(stateDir, 'reservation.key')), publicDir)
}
