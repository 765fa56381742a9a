import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Permit, signPermit } from '@airlock/contract'
import { newId, randomText } from '@airlock/std'

const PERMIT_LIFE_MS = 60_000

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
  const path = join(stateDir, 'permit.key')
  return new PermitDesk((await readKey(path)) ?? (await makeKey(path)))
}

async function readKey(path: string): Promise<KeyObject | undefined> {
  try {
    return createPrivateKey(await readFile(path))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

async function makeKey(path: string): Promise<KeyObject> {
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  await replaceFile(path, { text: String(pem), mode: 0o600 })
  return privateKey
}

/** Whole or not at all: a crash leaves the old file. */
async function replaceFile(path: string, content: { readonly text: string; readonly mode: number }): Promise<void> {
  const fresh = `${path}.${randomText(8)}`
  try {
    await writeFile(fresh, content.text, { mode: 0o600, flag: 'wx', flush: true })
    await chmod(fresh, content.mode)
    await rename(fresh, path)
  } finally {
    await rm(fresh, { force: true })
  }
}
