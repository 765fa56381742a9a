import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { randomText } from '@airlock/std'

/** Opens a key that signs, making it on the first start. Each purpose has a key of its own. */
export async function openSigningKey(path: string): Promise<KeyObject> {
  return (await readKey(path)) ?? (await makeKey(path))
}

/** Whole or not at all: a crash leaves the old file. */
export async function replaceFile(
  path: string,
  content: { readonly text: string; readonly mode: number },
): Promise<void> {
  const fresh = `${path}.${randomText(8)}`
  try {
    await writeFile(fresh, content.text, { mode: 0o600, flag: 'wx', flush: true })
    await chmod(fresh, content.mode)
    await rename(fresh, path)
  } finally {
    await rm(fresh, { force: true })
  }
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
