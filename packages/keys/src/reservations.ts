import { createPublicKey, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import {
  AirlockError,
  RESERVATION_KEY_FILE,
  type Reservation,
  type ToolOrder,
  verifyReservation,
  verifyToolOrder,
} from '@airlock/contract'
import type { Clock } from '@airlock/std'
import { WatchedFile } from './watched-file.ts'

/** Far more than can be used within the life of a reservation. */
const MOST_REMEMBERED = 200_000

interface DeskOptions {
  readonly publicDir: string
  /** The life of this process. */
  readonly life: string
  readonly clock: Clock
}

type Spendable = Pick<Reservation, 'callId' | 'node' | 'life' | 'expiresAt'>
type Verify<T> = (text: string, key: KeyObject, now: number) => T

/**
 * Takes each reservation, and each order of a call, once. Call ids are remembered until they expire. A reservation names the life of the process that
 * may take it, so a restart may forget: it makes all earlier reservations worthless.
 */
export class ReservationDesk {
  readonly #options: DeskOptions
  readonly #key: WatchedFile<KeyObject>
  readonly #node: WatchedFile<string>
  /** Call id → expiry, in the order of taking. */
  readonly #taken = new Map<string, number>()

  constructor(options: DeskOptions) {
    this.#options = options
    this.#key = new WatchedFile(join(options.publicDir, RESERVATION_KEY_FILE), createPublicKey)
    this.#node = new WatchedFile(join(options.publicDir, 'node'), String)
  }

  /** Fails closed: forged, expired, of another node or life, or taken before is `reservation_rejected`. */
  take(text: string): Reservation {
    return this.#take(text, verifyReservation)
  }

  /** The same of one call of a tool. */
  takeOrder(text: string): ToolOrder {
    return this.#take(text, verifyToolOrder)
  }

  #take<T extends Spendable>(text: string, verify: Verify<T>): T {
    const key = this.#key.get()
    if (key === undefined) throw rejected('cannot be verified: the control plane has published no key')
    const now = this.#options.clock.now()
    return this.#spend(verify(text, key, now), now)
  }

  #spend<T extends Spendable>(signed: T, now: number): T {
    if (signed.node !== this.#node.get()) throw rejected('is for another node')
    if (signed.life !== this.#options.life) throw rejected('is for an earlier life of this process')
    this.#forgetExpired(now)
    if (this.#taken.has(signed.callId)) throw rejected('was used before')
    if (this.#taken.size >= MOST_REMEMBERED) throw rejected('cannot be remembered: too many are in use')
    this.#taken.set(signed.callId, signed.expiresAt)
    return signed
  }

  /** Stops at the first that is still good; expired ones behind it wait for a later call. */
  #forgetExpired(now: number): void {
    for (const [callId, expiresAt] of this.#taken) {
      if (expiresAt > now) return
      this.#taken.delete(callId)
    }
  }
}

function rejected(why: string): AirlockError {
  return new AirlockError('reservation_rejected', `The reservation ${why}.`)
}
