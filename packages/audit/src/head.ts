import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import {
  AirlockError,
  type BrokenHead,
  type DroppedHead,
  type QuarantinedHead,
  type SignedHead,
} from '@airlock/contract'
import { canonical } from './canonical.ts'
import type { ChainPosition } from './chain.ts'

type Signed = SignedHead | DroppedHead | BrokenHead | QuarantinedHead

/** Signs that the chain of `tenant` has this hash at this seq. Precondition: an Ed25519 private key. */
export function signHead(
  key: KeyObject,
  chain: ChainPosition & { readonly tenant: string; readonly ts: string; readonly end?: true },
): SignedHead {
  const { tenant, seq, hash, ts, end } = chain
  const statement = { tenant, seq, hash, ts, ...(end ? { end } : {}) }
  return { ...statement, ...signatureOf(key, statement) }
}

/** Signs that all records up to `seq` were dropped, where the chain had this hash. */
export function signDropped(key: KeyObject, statement: Omit<DroppedHead, 'keyId' | 'signature'>): DroppedHead {
  return { ...statement, ...signatureOf(key, statement) }
}

/** Signs that the chain does not verify beyond `seq`. */
export function signBroken(key: KeyObject, statement: Omit<BrokenHead, 'keyId' | 'signature'>): BrokenHead {
  return { ...statement, ...signatureOf(key, statement) }
}

/** Signs that what followed `seq` was set aside. */
export function signQuarantined(
  key: KeyObject,
  statement: Omit<QuarantinedHead, 'keyId' | 'signature'>,
): QuarantinedHead {
  return { ...statement, ...signatureOf(key, statement) }
}

function signatureOf(key: KeyObject, statement: object): { readonly keyId: string; readonly signature: string } {
  const keyId = keyIdOf(createPublicKey(key))
  return { keyId, signature: sign(null, Buffer.from(canonical({ ...statement, keyId })), key).toString('base64url') }
}

/** Whether this key signed exactly this head. */
export function isSignedBy(head: Signed, publicKey: KeyObject): boolean {
  const { signature, ...statement } = head
  if (head.keyId !== keyIdOf(publicKey)) return false
  return verify(null, Buffer.from(canonical(statement)), publicKey, Buffer.from(signature, 'base64url'))
}

export function parsePublicKey(pem: string): KeyObject {
  try {
    const key = createPublicKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (cause) {
    throw new AirlockError('invalid_request', 'The public key is not PEM.', { cause })
  }
  throw new AirlockError('invalid_request', 'The public key is not an Ed25519 key.')
}

/** The first 16 hex digits of the SHA-256 of the raw public key. */
function keyIdOf(publicKey: KeyObject): string {
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  return createHash('sha256').update(raw).digest('hex').slice(0, 16)
}
