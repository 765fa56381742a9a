import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { chmod, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AirlockError } from '@airlock/contract'
import { randomText } from '@airlock/std'

/** Opens a key that signs, making it on the first start. Each purpose has a key of its own. Fails closed on a damaged one. */
export async function openSigningKey(path: string): Promise<KeyObject> {
  return (await readKey(path)) ?? (await makeKey(path))
}

/** Whole or not at all, and durable with its name: a crash leaves the old file. */
export async function replaceFile(
  path: string,
  content: { readonly text: string; readonly mode: number },
): Promise<void> {
  const fresh = `${path}.${randomText(8)}`
  try {
    await writeFile(fresh, content.text, { mode: 0o600, flag: 'wx', flush: true })
    await chmod(fresh, content.mode)
    await rename(fresh, path)
    await syncDirectory(dirname(path))
  } finally {
    await rm(fresh, { force: true })
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

async function readKey(path: string): Promise<KeyObject | undefined> {
  const pem = await readFile(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  try {
    return pem && createPrivateKey(pem)
  } catch (cause) {
    throw new AirlockError('state_damaged', `${path} is damaged: it holds no private key.`, {
      cause,
      hint: 'Put it back from a backup, or remove it: the next start makes another, and nothing is lost.',
    })
  }
}

async function makeKey(path: string): Promise<KeyObject> {
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  await replaceFile(path, { text: String(pem), mode: 0o600 })
  return privateKey
}
