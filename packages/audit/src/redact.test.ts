import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonical } from './canonical.ts'
import { redact, redactRecord } from './redact.ts'

const PEM = '-----BEGIN OPENSSH PRIVATE KEY-----\nCANARYb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----'

/** Each holds the word CANARY where the secret is. */
const SECRETS = [
  'al_0123456789ab_CANARY0123456789abcdefghjkmnpq',
  'alt_CANARYeyJ0b2tlbiI6IngifQ.CANARY0123456789_-abcdef',
  'Bearer CANARY-0123.456',
  'bearer CANARY/+=xyz',
  'Authorization: Basic CANARYdXNlcjpwYXNz',
  'AKIACANARY0123456789',
  'ghp_CANARY0123456789012345678901234567',
  'ghs_CANARY0123456789012345678901234567',
  'github_pat_CANARY01234567_890123456789',
  'sk-CANARY-0123456789abcdef',
  'sk-ant-api03-CANARY-0123456789abcdef',
  'xoxb-CANARY-0123456789',
  'eyJhbGciOiJIUzI1NiJ9.eyJDQU5BUlkiCANARY.sigCANARY_-x',
  'https://user:CANARY@example.com/path',
  'https://CANARY@example.com/path',
  'postgres://u:CANARY@p@db/x',
  'password=CANARY',
  'MY_API_KEY=CANARY',
  '{"access_token": "CANARY"}',
  PEM,
]

const SECRET_KEYS = [
  'password',
  'PASSWORD',
  'dbPassword',
  'api_key',
  'x-api-key',
  'apiKey',
  'token',
  'accessToken',
  'client_secret',
  'Authorization',
  'cookie',
  'Set-Cookie',
  'private_key',
  'AWS_SECRET_ACCESS_KEY',
]

describe('redact', () => {
  it('keeps the id of one of our keys and what is not secret', () => {
    const payload = { key: 'al_0123456789ab_0123456789abcdefghjkmnpqrstvwxyz', argv: ['ls', '-l'], n: 1, ok: true }
    expect(redact(payload)).toEqual({ key: 'al_0123456789ab_[redacted]', argv: ['ls', '-l'], n: 1, ok: true })
  })

  it('leaves ordinary texts alone', () => {
    const payload = {
      path: '/workspace/total_memory_report.txt',
      name: 'task-force-of-the-day-and-week',
      url: 'http://a/b?c=d',
    }
    expect(redact(payload)).toEqual(payload)
  })

  it('redacts the argument after a flag that asks for a secret', () => {
    expect(redact({ argv: ['login', '--password', 'CANARY', 'x'] })).toEqual({
      argv: ['login', '--password', '[redacted]', 'x'],
    })
  })

  it.each(SECRET_KEYS)('redacts whatever is under %s', (key) => {
    expect(redact({ [key]: { deep: ['CANARY'] } })).toEqual({ [key]: '[redacted]' })
  })

  it('lets no secret through, wherever it sits', () => {
    const secret = fc.constantFrom(...SECRETS)
    const around = fc.constantFrom('', ' ', '"', "'", '\n', '(', ' text ', ', ')
    const text = fc.tuple(around, secret, around).map((parts) => parts.join(''))
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        text,
        fc.integer(),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(fc.oneof(fc.string(), text), tie('tree'), { maxKeys: 4 }),
        fc.record({ password: fc.constant('CANARY'), argv: fc.constant(['--token', 'CANARY']) }),
      ),
    }))
    fc.assert(
      fc.property(tree, (value) => {
        expect(JSON.stringify(redact({ value }))).not.toContain('CANARY')
      }),
      { numRuns: 500 },
    )
  })

  it('lets no half of a secret through where a text is cut', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SECRETS), fc.integer({ min: 3900, max: 4200 }), (secret, length) => {
        expect(JSON.stringify(redact({ a: `${'x'.repeat(length)} ${secret}` }))).not.toContain('CANARY')
        expect(JSON.stringify(redact({ a: `${PEM.repeat(800)} ${secret.repeat(30)}` }))).not.toContain('CANARY')
      }),
      { numRuns: 100 },
    )
  })

  it('answers within bounds, whatever it is given', () => {
    const loop: Record<string, unknown> = { big: 1n, call: () => 1, nan: Number.NaN, ['__proto__x']: 1 }
    loop['self'] = loop
    const wide = Array.from({ length: 150 }, () => Array.from({ length: 150 }, () => '"'.repeat(5000)))
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, n]))
    const payload = redact({ loop, wide, many, ['k'.repeat(9000)]: 1 })
    expect(canonical(payload).length).toBeLessThan(512 * 1024)
    expect(Object.keys(redact(many)).length).toBeLessThanOrEqual(101)
  })

  it('keeps a key named __proto__, under another name', () => {
    expect(redact(JSON.parse('{"__proto__": {"a": 1}}'))).toEqual({ '[__proto__]': { a: 1 } })
  })

  it('gives keys that become the same different names', () => {
    expect(redact({ 'sk-CANARY-0123456789abcdef': 1, 'sk-CANARY-0123456789abcdeg': 2 })).toEqual({
      '[redacted]': 1,
      '[redacted]#2': 2,
    })
  })

  it('takes no long time for texts that almost match', () => {
    for (const part of ['eyJ-', 'a.', '://x', 'bearer ', 'al_a_', 'sk-', '"token', 'authorization:', '-----BEGIN '])
      expect(JSON.stringify(redact({ a: part.repeat(64 * 1024) })).length).toBeLessThan(8192)
  })
})

describe('redactRecord', () => {
  it('redacts the error too, and keeps who did it to what', () => {
    const record = {
      tenant: 'default',
      agent: 'default',
      actor: 'key:abc',
      point: 'command.run',
      status: 'failed',
      error: { code: 'internal', message: 'no access with Bearer CANARY0123' },
    } as const
    expect(redactRecord(record)).toEqual({
      ...record,
      sandbox: null,
      payload: {},
      error: { code: 'internal', message: 'no access with Bearer [redacted]' },
    })
  })
})
