import { createPublicKey, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import {
  type SandboxToken,
  signSandboxToken,
  TOKEN_SCOPES,
  type TokenFault,
  verifySandboxToken,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import { openSigningKey } from '../sandboxes/signing-key.ts'

const TOKEN_LIFE_MS = 10 * 60_000

/** A token as it is given out: the text is the secret, the rest is for evidence. */
export interface IssuedToken {
  readonly text: string
  readonly tokenId: string
  readonly lifeMs: number
  readonly expiresAt: number
}

/** Who a token is for. */
interface Holder {
  readonly id: string
  readonly tenant: string
  readonly agent: string
  readonly generation: number
}

/** Signs the tokens of sandboxes, and reads them again. The key is no other's, and never leaves this process. */
export class SandboxTokenDesk {
  readonly #key: KeyObject
  readonly #publicKey: KeyObject

  constructor(key: KeyObject) {
    this.#key = key
    this.#publicKey = createPublicKey(key)
  }

  issue({ id: sandbox, tenant, agent, generation }: Holder, now: number): IssuedToken {
    const tokenId = newId('tok', now)
    const expiresAt = now + TOKEN_LIFE_MS
    const payload = { tokenId, tenant, agent, sandbox, generation, scopes: [...TOKEN_SCOPES], issuedAt: now, expiresAt }
    return { text: signSandboxToken(payload, this.#key), tokenId, lifeMs: TOKEN_LIFE_MS, expiresAt }
  }

  read(text: string, now: number): SandboxToken | TokenFault {
    return verifySandboxToken(text, this.#publicKey, now)
  }
}

export async function openSandboxTokenDesk(stateDir: string): Promise<SandboxTokenDesk> {
  return new SandboxTokenDesk(await openSigningKey(join(stateDir, 'sandbox-token.key')))
}
