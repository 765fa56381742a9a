import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../defaults.ts'
import { type Permit, signPermit, verifyPermit } from './permit.ts'

const ours = generateKeyPairSync('ed25519')
const theirs = generateKeyPairSync('ed25519')
const NOW = 1_800_000_000_000

const good: Permit = {
  permitId: 'pmt_1',
  sandbox: 'sbx_01k00000000000000000000000',
  node: 'here',
  tenant: 'default',
  agent: 'default',
  generation: 1,
  template: 'base',
  image: 'host',
  tier: 'standard',
  limits: {
    memoryBytes: DEFAULTS.memoryBytes.default,
    cpus: DEFAULTS.cpus.default,
    pids: DEFAULTS.pids.default,
    diskBytes: DEFAULTS.diskBytes.default,
    inodes: DEFAULTS.inodes.default,
    openFiles: DEFAULTS.openFiles.default,
    cpuSeconds: null,
  },
  env: {},
  mounts: [],
  doors: [],
  conditions: {},
  policyVersion: 'builtin@1',
  reservation: 'rsv_1',
  expiresAt: NOW + 60_000,
  endsAt: NOW + 3_600_000,
}

describe('a permit', () => {
  it('comes back as it was signed', () => {
    expect(verifyPermit(signPermit(good, ours.privateKey), ours.publicKey, NOW)).toEqual(good)
  })

  it('is refused when another key signed it', () => {
    expect(() => verifyPermit(signPermit(good, theirs.privateKey), ours.publicKey, NOW)).toThrow('not signed')
  })

  it('is refused at the moment it expires', () => {
    const token = signPermit(good, ours.privateKey)
    expect(() => verifyPermit(token, ours.publicKey, good.expiresAt)).toThrow('expired')
  })

  it('is refused when it carries a field we do not know', () => {
    const more = { ...good, admin: true }
    expect(() => verifyPermit(signPermit(more, ours.privateKey), ours.publicKey, NOW)).toThrow('malformed')
  })

  it('is refused when it does not keep to its own conditions', () => {
    const mount = {
      grant: 'grt_01k00000000000000000000000',
      path: '/srv',
      mode: 'rw',
      kind: 'dir',
      target: '/grants/srv',
      dev: '1',
      ino: '1',
      allowed: [],
      blocked: [],
    } as const
    const verify = (changes: Partial<Permit>) =>
      verifyPermit(signPermit({ ...good, ...changes }, ours.privateKey), ours.publicKey, NOW)
    const mounts = [{ ...mount, allowed: [], blocked: [] }]
    expect(() => verify({ conditions: { tier: 'strict' } })).toThrow('asks for the strict tier')
    expect(() => verify({ conditions: { readOnly: true }, mounts })).toThrow('asks for read-only mounts')
    const kept = { tier: 'strict', conditions: { tier: 'strict', readOnly: true, maxTimeoutMs: 5 } } as const
    expect(verify({ ...kept, mounts: mounts.map((one) => ({ ...one, mode: 'ro' as const })) })).toMatchObject(kept)
    expect(() => verify({ policyVersion: '' })).toThrow('malformed')
  })

  it('is refused after any change of any character', () => {
    const token = signPermit(good, ours.privateKey)
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom('A', 'z', '0', '-', '_', '.'), (at, letter) => {
        const changed = token.slice(0, at) + letter + token.slice(at + 1)
        // The last letter of each part may hold unused bits: the same bytes are the same permit.
        fc.pre(decoded(changed) !== decoded(token))
        expect(() => verifyPermit(changed, ours.publicKey, NOW)).toThrow()
      }),
    )
  })
})

function decoded(token: string): string {
  return token
    .split('.')
    .map((part) => Buffer.from(part, 'base64url').toString('hex'))
    .join('.')
}
