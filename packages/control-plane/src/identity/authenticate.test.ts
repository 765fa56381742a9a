import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NewRecord, Principal } from '@airlock/contract'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../store/engine/store.ts'
import { findApiKey, setKeyUsed } from '../store/api-keys.ts'
import { LatestTimes } from '../store/engine/latest-times.ts'
import { GuardKeys } from './guard-keys.ts'
import { BearerAuthenticator } from './authenticate.ts'
import { type KeyFiles, prepareFirstStart } from './first-start.ts'

let dir: string
let store: Store
let now: number
let notes: NewRecord[]
let authenticator: BearerAuthenticator
let keyUses: LatestTimes
let seen: Principal[]
const clock = { now: () => now }

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-identity-'))
  store = await openStore({ file: join(dir, 'airlock.db') })
  now = 1_000_000
  notes = []
  const audit = { require: async () => {}, note: (record: NewRecord) => void notes.push(record), flush: async () => {} }
  keyUses = new LatestTimes(store, setKeyUsed)
  seen = []
  const onSeen = (principal: Principal) => void seen.push(principal)
  const guardKeys = new GuardKeys({ store, clock })
  authenticator = new BearerAuthenticator({ store, audit, clock, keyUses, guardKeys, tokens: null, onSeen })
})

afterEach(async () => {
  await store.close()
  rmSync(dir, { recursive: true, force: true })
})

const firstStart = () => prepareFirstStart(store, { keysDir: dir, clock, node: 'here' })
const header = (path: string) => `Bearer ${readFileSync(path, 'utf8').trim()}`
const refusal = async (authorization: string | undefined) =>
  authenticator.authenticate(authorization, 'req_1').catch((error: unknown) => error)

describe('the first start', () => {
  it('makes two keys that only their owner can read, and that differ in what they may do', async () => {
    const { developerKey, adminKey } = await firstStart()
    for (const path of [developerKey, adminKey]) {
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(readFileSync(path, 'utf8')).toMatch(/^al_\w{12}_\w{32}\n$/)
    }
    expect(await authenticator.authenticate(header(developerKey), 'req_1')).toEqual({
      actor: expect.stringMatching(/^key:\w{12}$/),
      tenant: 'default',
      role: 'developer',
      agents: null,
      platform: false,
    })
    expect(await authenticator.authenticate(header(adminKey), 'req_1')).toMatchObject({ role: 'admin', platform: true })
    expect(notes).toEqual([])
  })

  it('of another node on the same store leaves the keys of the first alone', async () => {
    const { developerKey, adminKey } = await firstStart()
    const other = join(dir, 'other')
    mkdirSync(other)
    const keys = await prepareFirstStart(store, { keysDir: other, clock, node: 'there' })
    for (const path of [developerKey, adminKey, keys.developerKey, keys.adminKey])
      expect(await authenticator.authenticate(header(path), 'req_1')).toMatchObject({ tenant: 'default' })
  })

  it('leaves keys alone that are there and good', async () => {
    const { developerKey } = await firstStart()
    const before = readFileSync(developerKey, 'utf8')
    await firstStart()
    expect(readFileSync(developerKey, 'utf8')).toBe(before)
  })

  it.each([
    ['missing', ({ developerKey }: KeyFiles) => rmSync(developerKey)],
    ['damaged', ({ developerKey }: KeyFiles) => writeFileSync(developerKey, 'al_\n')],
    [
      'of another store',
      ({ developerKey }: KeyFiles) => writeFileSync(developerKey, `al_${'0'.repeat(12)}_${'0'.repeat(32)}`),
    ],
  ])('replaces a key file that is %s, and revokes what was in it', async (_how, spoil) => {
    const keys = await firstStart()
    const [old, admin] = [header(keys.developerKey), header(keys.adminKey)]
    spoil(keys)
    await firstStart()
    expect((await authenticator.authenticate(header(keys.developerKey), 'req_1')).role).toBe('developer')
    expect((await authenticator.authenticate(admin, 'req_1')).role).toBe('admin')
    expect(await refusal(old)).toMatchObject({ code: 'unauthenticated' })
    expect(notes.at(-1)?.payload).toMatchObject({ reason: 'revoked' })
  })
})

describe('authentication', () => {
  it('refuses everything that is not a good key with the same words, and records why', async () => {
    const { developerKey } = await firstStart()
    const good = header(developerKey)
    const wrong = `${good.slice(0, -1)}${good.endsWith('0') ? '1' : '0'}`
    const id = good.slice('Bearer al_'.length, 'Bearer al_'.length + 12)
    const cases = [
      [undefined, { reason: 'missing' }],
      ['', { reason: 'malformed' }],
      ['Basic abc', { reason: 'malformed' }],
      [`Bearer ${'x'.repeat(10_000)}`, { reason: 'malformed' }],
      ['Bearer a.b.c', { reason: 'token_not_accepted' }],
      [`${good} ${good}`, { reason: 'malformed' }],
      [`Bearer al_${'0'.repeat(12)}_${'0'.repeat(32)}`, { reason: 'unknown', key: '0'.repeat(12) }],
      [wrong, { reason: 'mismatch', key: id }],
    ] as const
    for (const [authorization, payload] of cases) {
      expect(await refusal(authorization)).toMatchObject({
        code: 'unauthenticated',
        message: 'No valid API key was given.',
      })
      expect(notes.pop()).toEqual({
        tenant: 'system',
        actor: 'system',
        point: 'auth.refuse',
        status: 'denied',
        payload: { requestId: 'req_1', ...payload },
      })
    }
  })

  it('remembers when a key was used, and writes it in batches', async () => {
    const { developerKey } = await firstStart()
    const good = header(developerKey)
    const id = good.slice('Bearer al_'.length, 'Bearer al_'.length + 12)
    await authenticator.authenticate(good, 'req_1')
    now += 5
    await authenticator.authenticate(good, 'req_2')
    const row = () => store.query((db) => findApiKey(db, id))
    expect([(await row())?.lastUsedAt, keyUses.get(id), seen.length]).toEqual([null, now, 2])
    await keyUses.flush()
    expect([(await row())?.lastUsedAt, keyUses.get(id)]).toEqual([now, undefined])
  })
})
