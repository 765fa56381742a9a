import { type PolicyDocument, policyDocument, type Question } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { insertPolicy, PLATFORM, type StoredPolicy } from '../store/policies.ts'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { PolicyBook } from './policy-book.ts'

const log = createLog({ process: 'control-plane', level: 'silent', write: () => {} })

function denying(name: string, point: string, off: readonly string[] = []): PolicyDocument {
  const rule = { kind: 'operation', id: 'no', effect: 'deny', risk: 'high', reason: 'No.', match: { points: [point] } }
  return policyDocument.parse({ name, off, rules: [rule] })
}

function row(of: Pick<StoredPolicy, 'scope' | 'name' | 'version'>, document: PolicyDocument | null): StoredPolicy {
  return { ...of, document: document && JSON.stringify(document), createdAt: 1, createdBy: 'key:x' }
}

const ask = (tenant: string, point: Question['point'] = 'key.create'): Question => ({
  point,
  tenant,
  actor: 'key:x',
  role: 'admin',
  agent: null,
  sandbox: null,
  operation: { kind: 'other', payload: {} },
})

for (const dialect of DIALECTS)
  describe(`the policies in force on ${dialect.name}`, dialect.options, () => {
    let stores: TestStores
    let place: StorePlace
    let store: Store
    let book: PolicyBook
    /** How often it said that other policies are in force. */
    let changes: number
    beforeAll(async () => {
      stores = await dialect.start()
    }, 60_000)
    afterAll(async () => stores?.stop())
    beforeEach(async () => {
      place = await stores.make()
      store = await openStore(place)
      changes = 0
      book = new PolicyBook({ store, log, default: 'allow', onChange: () => (changes += 1) })
      await book.refresh()
    })
    afterEach(async () => store.close())

    const write = async (one: StoredPolicy): Promise<void> => store.query((db) => insertPolicy(db, one))
    const effect = (tenant: string) => book.decide(ask(tenant)).effect

    it('are those of the tenant and of the whole server, in their latest version', async () => {
      await write(row({ scope: 'acme', name: 'house', version: 1 }, denying('house', 'key.create')))
      await book.refresh()
      expect([effect('acme'), effect('globex')]).toEqual(['deny', 'allow'])
      expect(book.decide(ask('acme'))).toMatchObject({
        policyVersion: 'builtin@3,house@1',
        rules: [{ policy: 'house', rule: 'no', effect: 'deny', risk: 'high', reason: 'No.' }],
      })
      await write(row({ scope: 'acme', name: 'house', version: 2 }, null))
      await write(row({ scope: PLATFORM, name: 'platform-a', version: 1 }, denying('platform-a', 'key.create')))
      await book.refresh()
      expect([effect('acme'), effect('globex')]).toEqual(['deny', 'deny'])
      expect(book.inForce('acme').map(({ name, version }) => `${name}@${version}`)).toEqual([
        'builtin@3',
        'platform-a@1',
      ])
    })

    it('are compiled once: a look that finds nothing new changes nothing, and others stay what they are', async () => {
      await write(row({ scope: 'acme', name: 'house', version: 1 }, denying('house', 'key.create')))
      await book.refresh()
      const [, before] = book.inForce('acme')
      await write(row({ scope: 'globex', name: 'other', version: 1 }, denying('other', 'key.create')))
      await book.refresh()
      expect(book.inForce('acme')[1]).toBe(before)
      const known = changes
      await book.refresh()
      expect([known, changes]).toEqual([3, 3])
    })

    it('deny everything where one cannot be used, for whom it is, until it is mended', async () => {
      await write({ ...row({ scope: 'acme', name: 'torn', version: 1 }, null), document: '{"name":' })
      await book.refresh()
      expect([effect('acme'), effect('globex')]).toEqual(['deny', 'allow'])
      expect(book.decide(ask('acme')).rules).toMatchObject([{ policy: 'torn', rule: 'unusable' }])
      await write(row({ scope: 'acme', name: 'torn', version: 2 }, denying('torn', 'tenant.create')))
      await book.refresh()
      expect(effect('acme')).toBe('allow')
    })

    it('of a tenant switch no rule of the whole server off, whoever stored that', async () => {
      await write(row({ scope: PLATFORM, name: 'platform-a', version: 1 }, denying('platform-a', 'key.create')))
      const off = denying('house', 'tenant.create', ['platform-a/no'])
      await write(row({ scope: 'acme', name: 'house', version: 1 }, off))
      await book.refresh()
      expect(effect('acme')).toBe('deny')
      expect(() => book.decideWith(off, 'acme')(ask('acme'))).not.toThrow()
      expect(book.decideWith(off, 'acme')(ask('acme')).effect).toBe('deny')
    })

    it('are found by looking, when somebody else wrote them', async () => {
      const other = await openStore(place)
      await other.query((db) =>
        insertPolicy(db, row({ scope: 'acme', name: 'house', version: 1 }, denying('house', 'key.create'))),
      )
      await other.close()
      expect(effect('acme')).toBe('allow')
      await book.refresh()
      expect(effect('acme')).toBe('deny')
    })

    it('can be tried with a draft in the place of one', async () => {
      await write(row({ scope: 'acme', name: 'house', version: 1 }, denying('house', 'key.create')))
      await book.refresh()
      const draft = book.decideWith(denying('house', 'tenant.create'), 'acme')
      expect([draft(ask('acme')).effect, draft(ask('acme', 'tenant.create')).effect]).toEqual(['allow', 'deny'])
      expect(effect('acme')).toBe('deny')
    })
  })
