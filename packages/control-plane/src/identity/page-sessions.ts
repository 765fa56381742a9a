import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '@airlock/std'

export const SESSION_MS = 12 * 3_600_000
/** How long the link of `npm start` may be opened. */
export const LINK_MS = 15 * 60_000
const MAX_SESSIONS = 2_048
const MAX_SESSIONS_PER_KEY = 32
const MAX_LINKS = 64
const SECRET_BYTES = 32

interface Grant {
  readonly keyId: string
  readonly endsAt: number
}

/**
 * Who is signed in at the page. In memory alone: a restart signs everybody out. Secrets are kept as hashes, and say which key
 * they stand for, never what it may do: that is read from the key at every request.
 */
export class PageSessions {
  readonly #clock: Clock
  readonly #sessions = new Map<string, Grant>()
  readonly #links = new Map<string, Grant>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A new session of a key; the oldest ones make room for it. Answers its secret. */
  open(keyId: string): string {
    const own = [...this.#sessions].filter(([, session]) => session.keyId === keyId)
    if (own.length >= MAX_SESSIONS_PER_KEY) this.#sessions.delete(own[0]?.[0] ?? '')
    return this.#grant(this.#sessions, { keyId, ms: SESSION_MS, most: MAX_SESSIONS })
  }

  /** The key of a session that is not over. */
  keyOf(secret: string): string | undefined {
    return this.#good(this.#sessions, secret)?.keyId
  }

  /** Answers the key of the session that it closed. */
  close(secret: string): string | undefined {
    return take(this.#sessions, secret)?.keyId
  }

  /** The secret of a link that signs in once. */
  openLink(keyId: string): string {
    return this.#grant(this.#links, { keyId, ms: LINK_MS, most: MAX_LINKS })
  }

  /** The key of a link. It is spent by asking. */
  spendLink(secret: string): string | undefined {
    const keyId = this.#good(this.#links, secret)?.keyId
    take(this.#links, secret)
    return keyId
  }

  #grant(
    table: Map<string, Grant>,
    of: { readonly keyId: string; readonly ms: number; readonly most: number },
  ): string {
    const now = this.#clock.now()
    for (const [hash, { endsAt }] of table) if (endsAt <= now) table.delete(hash)
    const [oldest] = table.keys()
    if (oldest !== undefined && table.size >= of.most) table.delete(oldest)
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    table.set(hashOf(secret), { keyId: of.keyId, endsAt: now + of.ms })
    return secret
  }

  #good(table: ReadonlyMap<string, Grant>, secret: string): Grant | undefined {
    const found = table.get(hashOf(secret))
    return found && found.endsAt > this.#clock.now() ? found : undefined
  }
}

function take(table: Map<string, Grant>, secret: string): Grant | undefined {
  const hash = hashOf(secret)
  const found = table.get(hash)
  table.delete(hash)
  return found
}

/** Looking up a hash tells nothing by its time that helps to guess the secret. */
function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
