import { hash, timingSafeEqual } from 'node:crypto'
import type { Role } from '@airlock/contract'
import { randomText } from '@airlock/std'
import type { StoredApiKey } from '../store/api-keys.ts'

const ID_LENGTH = 12
const SECRET_LENGTH = 32
const KEY = /^al_([0-9a-hjkmnp-tv-z]{12})_([0-9a-hjkmnp-tv-z]{32})$/

interface ParsedApiKey {
  readonly id: string
  readonly secret: string
}

/** A new key: the text is shown once, the row is what we keep. */
export function mintApiKey(of: {
  readonly tenant: string
  readonly role: Role
  readonly agents: readonly string[] | null
  readonly platform: boolean
  readonly name: string
  readonly purpose: string | null
  readonly createdAt: number
  readonly createdBy: string
  readonly expiresAt: number | null
  readonly replaces: string | null
  readonly person: string | null
}): { readonly text: string; readonly row: StoredApiKey } {
  const id = randomText(ID_LENGTH)
  const secret = randomText(SECRET_LENGTH)
  const agents = of.agents && [...of.agents]
  const row = { ...of, agents, id, hash: hashSecret(secret), revokedAt: null, lastUsedAt: null }
  return { text: `al_${id}_${secret}`, row }
}

export function parseApiKey(text: string): ParsedApiKey | undefined {
  const [, id, secret] = KEY.exec(text) ?? []
  return id !== undefined && secret !== undefined ? { id, secret } : undefined
}

type KeyRefusal = 'unknown' | 'mismatch' | 'revoked' | 'expired'

/**
 * Why a key is not good, or undefined when it is. An unknown id costs the same comparison as a known one, so that time
 * does not tell which ids exist.
 */
export function refuseApiKey(given: ParsedApiKey, row: StoredApiKey | undefined, now: number): KeyRefusal | undefined {
  const expected = Buffer.from(row?.hash ?? NO_HASH, 'hex')
  const matches = timingSafeEqual(expected, Buffer.from(hashSecret(given.secret), 'hex'))
  if (!row) return 'unknown'
  if (!matches) return 'mismatch'
  return refuseEnded(row, now)
}

/** Why a key is over that was good, or undefined when it is not. */
export function refuseEnded(row: StoredApiKey, now: number): 'revoked' | 'expired' | undefined {
  if (row.revokedAt !== null) return 'revoked'
  return row.expiresAt !== null && row.expiresAt <= now ? 'expired' : undefined
}

const NO_HASH = '0'.repeat(64)

function hashSecret(secret: string): string {
  return hash('sha256', secret)
}
