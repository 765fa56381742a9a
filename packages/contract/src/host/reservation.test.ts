import { generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { signPermit } from './permit.ts'
import { type Reservation, RESERVATION_LIFE_MS, signReservation, verifyReservation } from './reservation.ts'
import { signSandboxToken } from './sandbox-token.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const NOW = 1_800_000_000_000

const RESERVATION: Reservation = {
  callId: 'cal_0000000000aaaaaaaaaaaaaaaa',
  node: 'here',
  life: 'a'.repeat(26),
  tenant: 'default',
  agent: 'alice',
  sandbox: 'sbx_0000000000aaaaaaaaaaaaaaaa',
  account: 'default/alice',
  upstream: 'main',
  route: 'chat',
  model: 'gpt-5',
  ceiling: 125_000,
  maxOutputTokens: 1000,
  identity: {
    run_id: 'sbx_0000000000aaaaaaaaaaaaaaaa',
    attempt: 0,
    graph_id: 'base',
    user_id: 'default/alice',
    existing_trace_id: null,
    session_id: null,
    trace_user_id: null,
  },
  expiresAt: NOW + RESERVATION_LIFE_MS,
}

const signed = signReservation(RESERVATION, privateKey)
const verify = (text: string, now = NOW) => verifyReservation(text, publicKey, now)
const REJECTED = (why: string) =>
  expect.objectContaining({ code: 'reservation_rejected', message: expect.stringContaining(why) })

describe('a reservation', () => {
  it('comes back as it was signed', () => {
    expect(verify(signed)).toEqual(RESERVATION)
  })

  it('is refused at the moment it expires', () => {
    expect(() => verify(signed, RESERVATION.expiresAt)).toThrow(REJECTED('has expired'))
  })

  it('is refused when it is good for longer than any is', () => {
    expect(() => verify(signed, NOW - 1)).toThrow(REJECTED('is good for too long'))
  })

  it('is refused when another key signed it', () => {
    const { privateKey: other } = generateKeyPairSync('ed25519')
    expect(() => verify(signReservation(RESERVATION, other))).toThrow(REJECTED('is not signed'))
  })

  it('is no permit and no token, although one key signed all', () => {
    // oxlint-disable-next-line typescript/no-unsafe-argument -- the payload of another is what is tried
    const permit = signPermit(JSON.parse(JSON.stringify(RESERVATION)), privateKey)
    // oxlint-disable-next-line typescript/no-unsafe-argument -- the payload of another is what is tried
    const token = signSandboxToken(JSON.parse(JSON.stringify(RESERVATION)), privateKey)
    expect(() => verify(permit)).toThrow(REJECTED('is malformed'))
    expect(() => verify(`alr_${permit}`)).toThrow(REJECTED('is not signed'))
    expect(() => verify(token.replace('alt_', 'alr_'))).toThrow(REJECTED('is not signed'))
  })

  it.each([
    ['a field that we do not know', { admin: true }],
    ['no account', { account: undefined }],
    ['an account that breaks a header', { account: 'a\r\nx: y' }],
    ['an identity that breaks a header', { identity: { ...RESERVATION.identity, run_id: 'ä' } }],
    ['a fraction of a token', { maxOutputTokens: 1.5 }],
    ['a route that there is not', { route: 'files' }],
    ['a ceiling below zero', { ceiling: -1 }],
  ])('is refused with %s', (_what, changes) => {
    const bytes = Buffer.from(JSON.stringify({ ...RESERVATION, ...changes }))
    const signature = sign(null, Buffer.concat([Buffer.from('airlock model reservation 1\0'), bytes]), privateKey)
    const text = `alr_${bytes.toString('base64url')}.${signature.toString('base64url')}`
    expect(() => verify(text)).toThrow(REJECTED('is malformed'))
  })

  it.each(['', 'alr_', 'alr_.', signed.slice(4), `${signed}=`, ` ${signed}`, `${signed}.x`, signed.replace('.', '..')])(
    'is refused as %j',
    (text) => {
      expect(() => verify(text)).toThrow(REJECTED('is malformed'))
    },
  )

  it('is refused after any change of any character', () => {
    fc.assert(
      fc.property(fc.nat(signed.length - 1), fc.constantFrom('A', 'z', '0', '-', '_', '.'), (at, letter) => {
        const changed = signed.slice(0, at) + letter + signed.slice(at + 1)
        // The last letter of each part may hold unused bits: the same bytes are the same reservation.
        fc.pre(decoded(changed) !== decoded(signed))
        expect(() => verify(changed)).toThrow(REJECTED(''))
      }),
    )
  })
})

function decoded(text: string): string {
  const [head = '', signature = ''] = text.split('.')
  const hex = (part: string) => Buffer.from(part, 'base64url').toString('hex')
  return `${head.slice(0, 4)}${hex(head.slice(4))}.${hex(signature)}.${text.split('.').length}`
}
