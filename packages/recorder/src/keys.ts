import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface RecorderKeys {
  /** Ed25519, signs heads. */
  readonly signing: KeyObject
  readonly public: KeyObject
  readonly publicPem: string
  /** HMAC key of the unsigned tail. */
  readonly mac: KeyObject
}

/** Opens the recorder's keys; makes them on the first start. They never leave this process. */
export function openKeys(dir: string): RecorderKeys {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const keep = (name: string, make: () => Buffer | string) => {
    const path = join(dir, name)
    if (!existsSync(path)) createWhole(path, make())
    return readFileSync(path)
  }
  const signing = createPrivateKey(
    keep('head.pem', () => generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })),
  )
  const publicKey = createPublicKey(signing)
  const publicPem = publicKey.export({ format: 'pem', type: 'spki' }).toString()
  const mac = createSecretKey(keep('mac.key', () => randomBytes(32)))
  return { signing, public: publicKey, publicPem, mac }
}

/** A crash leaves the whole key or none. What is signed with it must not outlive it, so it is on disk first, with its name. */
function createWhole(path: string, content: Buffer | string): void {
  const fresh = `${path}.new`
  writeFileSync(fresh, content, { mode: 0o600, flush: true })
  renameSync(fresh, path)
  for (const dir of [dirname(path), dirname(dirname(path))]) syncDirNow(dir)
}

function syncDirNow(dir: string): void {
  const fd = openSync(dir, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
