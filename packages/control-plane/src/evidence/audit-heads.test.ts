import type { RecorderClient } from '@airlock/audit'
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
