import type { KeyObject } from 'node:crypto'
import { chmod, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AirlockError, newSealKey, parseSealKey } from '@airlock/contract'

/** The private key that opens secrets, made at the first start. Fails closed on a damaged one: every secret is sealed to it. */
export async function openSealKey(path: string): Promise<KeyObject> {
  const pem = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  try {
    return parseSealKey(pem ?? (await makeSealKey(path)))
  } catch (cause) {
    throw new AirlockError('state_damaged', `${path} is damaged: it holds no key that opens secrets.`, {
      cause,
      hint: 'Put it back from a backup. Without one remove it, and put every secret again.',
    })
  }
}

/** Durable with its name before anything is sealed to it. */
async function makeSealKey(path: string): Promise<string> {
  const pem = newSealKey()
  const fresh = `${path}.new`
  await rm(fresh, { force: true })
  const file = await open(fresh, 'wx', 0o600)
  await file.writeFile(pem)
  await file.sync()
  await file.close()
  await chmod(fresh, 0o400)
  await rename(fresh, path)
  const directory = await open(dirname(path))
  await directory.sync()
  await directory.close()
  return pem
}
