import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { AirlockError } from '@airlock/contract'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const MAC_BYTES = 32

export interface RecorderKeys {
  /** Ed25519, signs heads. */
  readonly signing: KeyObject
  readonly public: KeyObject
  readonly publicPem: string
  /** HMAC key of the unsigned tail. */
  readonly mac: KeyObject
}

/**
 * Opens the recorder's keys; makes them on the first start. They never leave this process. Fails closed: with a damaged key
 * no evidence could be told from a forgery.
 */
export function openKeys(dir: string): RecorderKeys {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const keep = (name: string, make: () => Buffer | string) => {
    const path = join(dir, name)
    if (!existsSync(path)) createWhole(path, make())
    return readFileSync(path)
  }
  const signing = parseSigningKey(
    join(dir, 'head.pem'),
    keep('head.pem', () => generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })),
  )
  const publicKey = createPublicKey(signing)
  const publicPem = publicKey.export({ format: 'pem', type: 'spki' }).toString()
  const mac = parseMacKey(
    join(dir, 'mac.key'),
    keep('mac.key', () => randomBytes(MAC_BYTES)),
  )
  return { signing, public: publicKey, publicPem, mac }
}

function parseSigningKey(path: string, pem: Buffer): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (cause) {
    throw new AirlockError('state_damaged', `${path} is damaged: it holds no key that signs evidence.`, { cause })
  }
}

/** Any bytes are a key for HMAC: a short one, or one of NULs, would be known to everybody. */
function parseMacKey(path: string, bytes: Buffer): KeyObject {
  if (bytes.length === MAC_BYTES && bytes.some((byte) => byte !== 0)) return createSecretKey(bytes)
  throw new AirlockError('state_damaged', `${path} is damaged: it is not ${MAC_BYTES} random bytes.`, {
    hint: 'Put it back from a backup (docs/backup.md), or remove it: a tenant whose last second of records no head covers is evidence_broken then.',
  })
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
