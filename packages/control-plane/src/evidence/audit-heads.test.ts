import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RecorderClient, Settled } from '@airlock/audit'
import { AirlockError, type SignedHead } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { putAuditHead, findAuditHead } from '../store/audit-heads.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { AuditHeads } from './audit-heads.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, CALLER, World } from '../testing/world.ts'

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let recorder: TestRecorder
    let world: World
    let evidence: RecorderClient
    let heads: AuditHeads
    beforeAll(async () => {
      stores = await dialect.start()
    })
    beforeEach(async () => {
      recorder = await TestRecorder.start()
      world = await World.make(recorder, { place: await stores.make() })
      evidence = recorder.client('reader')
      heads = new AuditHeads(world.context, evidence)
      await world.store.query((db) => insertTenantIfAbsent(db, { id: 'other', createdAt: 1 }))
      await evidence.require({ tenant: 'other', actor: 'system', point: 'server.start', status: 'done' })
      await world.lifecycle.creation.create(CALLER, aSandbox())
      // What is only noted joins the chain a moment later, and would move its head.
      await world.context.audit.flush(5000)
    })
    afterEach(async () => {
      await world?.close()
      await recorder?.stop()
    })
    afterAll(async () => {
      await stores?.stop()
    })

    const stored = () => world.store.query((db) => findAuditHead(db, { tenant: 'default', node: 'here' }))
    const put = async (change: { readonly seq?: number; readonly hash?: string }) => {
      const { head } = await evidence.head('default')
      await world.store.query((db) => putAuditHead(db, { ...head, ...change }, { node: 'here', storedAt: 1 }))
    }

    describe('the heads of the evidence', () => {
      it('are kept in the store', async () => {
        await heads.keep()
        const { head } = await evidence.head('default')
        expect(await stored()).toMatchObject({ tenant: 'default', seq: head.seq, hash: head.hash })
      })

      it('are not kept by a server that is not this node any more', async () => {
        const node = { ...world.node, holder: 'a copy' }
        await new AuditHeads({ ...world.context, node }, evidence).keep()
        expect(await stored()).toBeUndefined()
      })

      it('are good when the chain is as long, or longer', async () => {
        await heads.keep()
        await heads.check()
        await world.lifecycle.creation.create(CALLER, aSandbox())
        await heads.check()
        expect(world.context.readiness.brokenChains).toBe(0)
      })

      it.each([
        ['lost its end', { seq: 1_000_000 }],
        ['was written anew', { hash: '0'.repeat(64) }],
      ])(
        'show that a chain %s: fails closed, nothing is granted to its tenant, sandboxes can still be ended',
        async (_how, change) => {
          const { id } = await world.lifecycle.creation.create(CALLER, aSandbox())
          await put(change)
          await heads.check()
          await expect(world.lifecycle.creation.create(CALLER, aSandbox())).rejects.toMatchObject({
            code: 'evidence_broken',
          })
          const kept = await heads.keep()
          expect([...kept]).toEqual(['system', 'other'])
          expect([world.context.readiness.reason, world.context.readiness.brokenChains]).toEqual([undefined, 1])
          const end = { reason: 'terminated', actor: 'system' } as const
          expect(await world.lifecycle.termination.terminate(id, end)).toMatchObject({ state: 'stopped' })
          const stored = await world.store.query((db) => findAuditHead(db, { tenant: 'other', node: 'here' }))
          expect(stored?.seq).toBeGreaterThan(0)
          const [told] = (await evidence.query('system', { limit: 1, point: 'audit.broken' })).records
          expect(told).toMatchObject({ status: 'failed', payload: { tenant: 'default' } })
        },
      )

      /** Adds garbage to the end of a chain while the recorder alone is down. */
      const damageEnd = async (tenant: string, damage: (path: string) => void) =>
        recorder.restart((chains) => damage(join(chains, tenant, '000000000001.ndjson')))
      const addGarbage = (path: string) => appendFileSync(path, `${'\0'.repeat(100)}\n`)

      it.each(['other', 'system'])(
        'are kept again when the recorder alone was restarted with garbage at the end of the chain of %s',
        async (tenant) => {
          await heads.check()
          await heads.keep()
          await damageEnd(tenant, addGarbage)
          expect([...(await heads.keep())]).toEqual(['system', 'default', 'other'])
          expect(world.context.readiness.state).toEqual({ ready: true, warnings: [] })
          await evidence.require({ tenant, actor: 'system', point: 'server.start', status: 'done' })
          const { records } = await evidence.query(tenant, { limit: 10, point: 'recorder.recover' })
          expect(records).toMatchObject([{ payload: { tornBytes: 101, saved: true } }])
        },
      )

      it('show that a recorder that was restarted alone lost records that this process knows to be in the chain', async () => {
        await heads.check()
        await heads.keep()
        await evidence.require({ tenant: 'other', actor: 'system', point: 'server.start', status: 'done' })
        await damageEnd('other', (path) => {
          const lines = readFileSync(path, 'utf8').split('\n')
          const last = lines.findLastIndex((line) => line.includes('"mac"'))
          rmSync(join(path, '../head.json'), { force: true })
          writeFileSync(path, `${lines.slice(0, last).join('\n')}\n\0\0\0\n`)
        })
        await heads.keep()
        expect(world.context.readiness.state).toMatchObject({ ready: true, warnings: ['evidence_broken'] })
        const added = evidence.require({ tenant: 'other', actor: 'system', point: 'server.start', status: 'done' })
        await expect(added).rejects.toMatchObject({ code: 'evidence_broken' })
      })

      it('show that a recorder that was restarted alone has an older chain than the store', async () => {
        await heads.check()
        let before = ''
        await damageEnd('other', (path) => (before = readFileSync(path, 'utf8')))
        await evidence.require({ tenant: 'other', actor: 'system', point: 'server.start', status: 'done' })
        await heads.keep()
        await damageEnd('other', (path) => {
          rmSync(join(path, '../head.json'), { force: true })
          writeFileSync(path, before)
        })
        await heads.keep()
        expect(world.context.readiness.state).toMatchObject({ ready: true, warnings: ['evidence_broken'] })
      })

      it('warn of a chain that is being checked, and quarantine says so', async () => {
        await heads.check()
        await damageEnd('other', addGarbage)
        const by = { by: 'key:me', head: null }
        await expect(evidence.quarantine('other', by)).rejects.toMatchObject({
          code: 'evidence_unavailable',
          message: expect.stringContaining('is being checked'),
        })
        const waiting: Settled = { state: 'waiting', reason: 'the disk is full', publicKey: '' }
        const full = {
          lives: 0,
          head: async (tenant: string) => evidence.head(tenant),
          settle: async (tenant: string, head: SignedHead | null) =>
            tenant === 'other' ? waiting : evidence.settle(tenant, head),
        }
        const stuck = new AuditHeads(world.context, full)
        await stuck.check()
        expect([...(await stuck.keep())]).toEqual(['system', 'default'])
        expect(world.context.readiness.state).toEqual({ ready: true, warnings: ['evidence_unavailable'] })
        await heads.keep()
        expect(world.context.readiness.state).toEqual({ ready: true, warnings: [] })
      })

      it('blame a store that does not answer, not the evidence', async () => {
        const query = async () => Promise.reject(new AirlockError('store_unavailable'))
        const store = Object.assign(Object.create(world.store), { query })
        await new AuditHeads({ ...world.context, store }, evidence).keep()
        expect(world.context.readiness.reason).toBeUndefined()
      })

      it('are written only when they changed', async () => {
        await heads.keep()
        await world.store.query((db) => db.updateTable('auditHeads').set({ storedAt: 7 }).execute())
        await heads.keep()
        expect(
          await world.store.query((db) => db.selectFrom('auditHeads').select('storedAt').distinct().execute()),
        ).toEqual([{ storedAt: 7 }])
      })

      it('show that an older part of a chain was written anew', async () => {
        await put({ hash: '1'.repeat(64) })
        await world.lifecycle.creation.create(CALLER, aSandbox())
        await heads.check()
        expect(world.context.readiness.brokenChains).toBe(1)
      })
    })
  })
