import { z } from 'zod'
import { id, name, time } from '../scalars.ts'

/** Longest and shortest value. No ordinary answer of a service holds a text of that length by chance. */
export const SECRET_LENGTH = { min: 16, max: 2048 } as const
/** A value goes into a header as it is. */
export const SECRET_VALUE = /^[\x21-\x7e]+$/

/** `https://host` or `https://host:port` in its usual spelling: without a path, a user or a port that goes without saying. */
export const serviceOrigin = z
  .string()
  .max(300)
  .refine(isOrigin, 'must be an origin in its usual spelling, such as https://api.example.com')

function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text && url.port !== '0'
}

const sealKeyId = z.string().regex(/^[0-9a-f]{16}$/)

/** To what a client seals secrets. */
export const sealKey = z.strictObject({
  keyId: sealKeyId,
  /** X25519, 32 bytes in base64url. */
  publicKey: z.string().regex(/^[\w-]{43}$/),
  tenant: id.describe('Your tenant: a secret is sealed for it.'),
})
export type SealKey = z.infer<typeof sealKey>

export const sealedText = z
  .string()
  .max(4200)
  .regex(/^als_[\w-]{43}\.[\w-]{16}\.[\w-]{1,4096}$/, 'is not a sealed secret: airlock secret put makes one')

export const putSecretBody = z.strictObject({
  origin: serviceOrigin.describe('The only origin that the secret is ever sent to. It is sealed with the value.'),
  keyId: sealKeyId.describe('To which key it is sealed: that of GET /v1/secrets/key.'),
  sealed: sealedText,
})
export type PutSecretBody = z.infer<typeof putSecretBody>

/** A secret without its value. */
export const secret = z.strictObject({
  name,
  tenant: id,
  origin: z.string(),
  /** 1, and one more with each new value. */
  version: z.int(),
  usable: z.boolean().describe('Whether this node can open it.'),
  createdAt: time,
  updatedAt: time,
  updatedBy: z.string(),
})
export type Secret = z.infer<typeof secret>
