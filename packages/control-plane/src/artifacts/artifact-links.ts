import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AirlockError } from '@airlock/contract'
import { z } from 'zod'
import { replaceFile } from '../sandboxes/signing-key.ts'

const KEY_BYTES = 32

const claims = z.strictObject({
  artifact: z.string(),
  /** Epoch milliseconds. */
  expiresAt: z.int(),
  /** Who made it, as evidence names that. */
  by: z.string(),
})
export type LinkClaims = z.infer<typeof claims>

/** Signs what a link says, and reads it again. The key is no other's, and never leaves this process. */
export class ArtifactLinkDesk {
  readonly #key: Buffer

  constructor(key: Buffer) {
    this.#key = key
  }

  sign(said: LinkClaims): string {
    const text = Buffer.from(JSON.stringify(said)).toString('base64url')
    return `${text}.${this.#signatureOf(text).toString('base64url')}`
  }

  /** Throws `artifact_link_invalid`, and does not say why: a guess learns nothing. */
  verify(token: string, now: number): LinkClaims {
    const [text = '', signature = ''] = token.split('.')
    const given = Buffer.from(signature, 'base64url')
    const wanted = this.#signatureOf(text)
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted))
      throw new AirlockError('artifact_link_invalid')
    const said = claims.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    if (said.expiresAt <= now) throw new AirlockError('artifact_link_invalid')
    return said
  }

  #signatureOf(text: string): Buffer {
    return createHmac('sha256', this.#key).update(`airlock artifact link\n${text}`).digest()
  }
}

/** Makes the key on the first start. Without it, all links end. */
export async function openArtifactLinkDesk(stateDir: string): Promise<ArtifactLinkDesk> {
  const path = join(stateDir, 'artifact-links.key')
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (text !== undefined) return new ArtifactLinkDesk(parseKey(path, text))
  const key = randomBytes(KEY_BYTES)
  await replaceFile(path, { text: `${key.toString('hex')}\n`, mode: 0o600 })
  return new ArtifactLinkDesk(key)
}

function parseKey(path: string, text: string): Buffer {
  if (/^[0-9a-f]{64}\n?$/.test(text)) return Buffer.from(text.trim(), 'hex')
  throw new AirlockError('state_damaged', `${path} is damaged: it holds no key.`, {
    hint: 'Put it back from a backup, or remove it: the next start makes another, and links from before end.',
  })
}
