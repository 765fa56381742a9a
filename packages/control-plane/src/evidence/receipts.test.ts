import { RecorderClient } from '@airlock/audit'
import { createLog } from '@airlock/std'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findSandbox, listOwedSandboxes } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { Receipts } from './receipts.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, CALLER, World } from '../testing/world.ts'

const ALL = new Set(['default'])
const NONE = new Set<string>()

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let recorder: TestRecorder
    let world: World
    let id: string
    beforeAll(async () => {
      stores = await dialect.start()
      recorder = await TestRecorder.start()
      world = await World.make(recorder, { place: await stores.make() })
      id = (await world.lifecycle.creation.create(CALLER, aSandbox())).id
      await world.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'system' })
    })
    afterAll(async () => {
      await world?.close()
      await recorder?.stop()
      await stores?.stop()
    })

    const owed = async () =>
      (await world.store.query((db) => listOwedSandboxes(db, { node: 'here', after: '', limit: 9 }))).map(
        (row) => row.id,
      )
    const note = async (receipts: Receipts) => {
      const row = await world.store.query((db) => findSandbox(db, id))
      if (row) receipts.sandboxEnded(row, { usage: null, requestId: null })
    }

    describe('an end', () => {
      it('that was only sent is owed still', async () => {
        const spillDir = join(world.home, 'silent')
        mkdirSync(spillDir)
        const log = createLog({ process: 'control-plane', level: 'silent', write: () => {} })
        const silent = new RecorderClient({ socket: join(spillDir, 'nobody.sock'), spillDir, log })
        const receipts = new Receipts({ ...world.context, audit: silent })
        await note(receipts)
        await receipts.flush(async () => ALL)
        expect(await owed()).toEqual([id])
        silent.close()
      })

      it('that the recorder has is owed until the store has a head that covers it', async () => {
        await world.context.audit.flush(10_000)
        await world.lifecycle.receipts.flush(async () => NONE)
        expect(await owed()).toEqual([id])
        await world.lifecycle.receipts.flush(async () => ALL)
        expect(await owed()).toEqual([])
      })

      it('that is noted again is in the chain once', async () => {
        await note(new Receipts(world.context))
        await world.context.audit.flush(10_000)
        expect((await world.story(id)).filter((line) => line === 'sandbox.terminate done')).toHaveLength(1)
      })
    })
  })
