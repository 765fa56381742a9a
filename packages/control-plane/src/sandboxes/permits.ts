import { createPublicKey, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { type Permit, PERMIT_LIFE_MS, signPermit } from '@airlock/contract'
import { newId } from '@airlock/std'
import { openSigningKey, replaceFile } from './signing-key.ts'

/** Signs permits; the data plane knows only the public half. */
export class PermitDesk {
  readonly #key: KeyObject

  constructor(key: KeyObject) {
    this.#key = key
  }

  /** Puts the public half where the data plane reads it, and which node it is. */
  async publish(publicDir: string, node: string): Promise<void> {
    await replaceFile(join(publicDir, 'node'), { text: node, mode: 0o644 })
    const pem = createPublicKey(this.#key).export({ type: 'spki', format: 'pem' })
    await replaceFile(join(publicDir, 'permit.pub'), { text: String(pem), mode: 0o644 })
  }

  /** A permit for one creation, good for a minute. */
  issue(what: Omit<Permit, 'permitId' | 'expiresAt'>, now: number): string {
    return signPermit({ ...what, permitId: newId('pmt', now), expiresAt: now + PERMIT_LIFE_MS }, this.#key)
  }
}

/** Opens the signing key, making it on the first start. */
export async function openPermitDesk(stateDir: string): Promise<PermitDesk> {
  return new PermitDesk(await openSigningKey(join(stateDir, 'permit.key')))
}
