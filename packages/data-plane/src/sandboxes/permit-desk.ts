import { AirlockError, type Permit, verifyPermit } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import { createPublicKey } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'

const CLAIM_KEPT_MS = 10 * 60_000
const SWEEP_EVERY_MS = 60_000

/** Checks permits and lets each be used once. A claim is a directory, so that it survives kill -9. */
export class PermitDesk {
  readonly #keyFile: string
  readonly #nodeFile: string
  readonly #claims: string
  readonly #clock: Clock
  #sweptAt = -Infinity

  constructor(options: { publicDir: string; stateDir: string; clock: Clock }) {
    this.#keyFile = join(options.publicDir, 'permit.pub')
    this.#nodeFile = join(options.publicDir, 'node')
    this.#claims = join(options.stateDir, 'permits')
    this.#clock = options.clock
  }

  /** Fails closed: forged, expired, of another node or used before is `permit_rejected`. */
  async redeem(token: string): Promise<Permit> {
    const permit = verifyPermit(token, createPublicKey(await readFile(this.#keyFile)), this.#clock.now())
    if (permit.node !== (await readFile(this.#nodeFile, 'utf8')))
      throw new AirlockError('permit_rejected', 'The permit is for another node.')
    await this.#forgetExpired()
    await mkdir(this.#claims, { recursive: true })
    const claim = join(this.#claims, permit.permitId)
    await mkdir(claim).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === 'EEXIST') throw new AirlockError('permit_rejected', 'The permit was used before.')
      throw cause
    })
    // What is to be forgotten goes by the clock that permits go by, not by that of the file system.
    await utimes(claim, permit.expiresAt / 1000, permit.expiresAt / 1000)
    return permit
  }

  /** Claims of permits that are over for long. Not at every permit, for there may be thousands of them. */
  async #forgetExpired(): Promise<void> {
    if (this.#clock.now() < this.#sweptAt + SWEEP_EVERY_MS) return
    this.#sweptAt = this.#clock.now()
    const names = await readdir(this.#claims).catch(() => [])
    for (const name of names) {
      const path = join(this.#claims, name)
      const expired = await stat(path).then(
        (found) => found.mtimeMs,
        () => Infinity,
      )
      if (expired < this.#clock.now() - CLAIM_KEPT_MS) await rm(path, { recursive: true, force: true })
    }
  }
}
