import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

/** A secret is opened only as what its client sealed it for. */
export interface SecretPurpose {
  readonly tenant: string
  readonly name: string
  /** The only origin that the secret is ever sent to. */
  readonly origin: string
}

const PREFIX = 'als_'
const SHAPE = /^als_([\w-]{43})\.([\w-]{16})\.([\w-]{1,4096})$/
const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_ID_LENGTH = 16

/** `als_ephemeral.nonce.ciphertext`: X25519, HKDF-SHA256 and AES-256-GCM. `recipient` is 32 bytes in base64url. */
export function sealSecret(value: string, purpose: SecretPurpose, recipient: string): string {
  const ephemeral = generateKeyPairSync('x25519')
  const publicKey = rawPublicKey(ephemeral.publicKey)
  const shared = diffieHellman({ privateKey: ephemeral.privateKey, publicKey: parsePublicKey(recipient) })
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, deriveKey(shared, [publicKey, recipient]), nonce)
  cipher.setAAD(associatedData(purpose))
  const sealed = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `${PREFIX}${publicKey}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`
}

/** Undefined when it was sealed to another key, for another purpose, or altered. */
export function openSecret(text: string, purpose: SecretPurpose, privateKey: KeyObject): string | undefined {
  const [, ephemeral, nonce, sealed] = SHAPE.exec(text) ?? []
  if (ephemeral === undefined || nonce === undefined || sealed === undefined) return undefined
  const bytes = Buffer.from(sealed, 'base64url')
  // One text for each ciphertext: the last character may hold bits that no byte has.
  if (bytes.length <= TAG_BYTES || bytes.toString('base64url') !== sealed) return undefined
  try {
    const shared = diffieHellman({ privateKey, publicKey: parsePublicKey(ephemeral) })
    const recipient = rawPublicKey(createPublicKey(privateKey))
    const decipher = createDecipheriv(
      CIPHER,
      deriveKey(shared, [ephemeral, recipient]),
      Buffer.from(nonce, 'base64url'),
    )
    decipher.setAAD(associatedData(purpose))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8')
  } catch {
    // Which of the three it is, nobody is told.
    return undefined
  }
}

/** 32 bytes in base64url. */
export function rawPublicKey(key: KeyObject): string {
  return String(key.export({ format: 'jwk' }).x)
}

/** Names a public key. */
export function sealKeyId(publicKey: string): string {
  return createHash('sha256').update(publicKey).digest('hex').slice(0, KEY_ID_LENGTH)
}

/** A private key for `openSecret`, as PKCS#8 in PEM. */
export function newSealKey(): string {
  return String(generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
}

/** Throws when the text is not a private key of X25519. */
export function parseSealKey(pem: string): KeyObject {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyType !== 'x25519') throw new TypeError('not a private key of X25519')
  return key
}

function parsePublicKey(raw: string): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: raw }, format: 'jwk' })
}

/** Both public keys are in the salt: a ciphertext belongs to one pair. */
function deriveKey(shared: Buffer, publicKeys: readonly [string, string]): Buffer {
  const salt = createHash('sha256').update(publicKeys.join('.')).digest()
  return Buffer.from(hkdfSync('sha256', shared, salt, 'airlock sealed secret 1', KEY_BYTES))
}

function associatedData({ tenant, name, origin }: SecretPurpose): Buffer {
  return Buffer.from(JSON.stringify([tenant, name, origin]))
}
