import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NewRecord, Point } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { OpenDeeds } from './open-deeds.ts'
import type { StagedSink } from './sink.ts'

const log = createLog({ process: 'test', level: 'silent', write: () => {} })

let dir: string
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'airlock-deeds-'))))
afterEach(() => rmSync(dir, { recursive: true }))

/** One life of a process: what it sends, and to whom. */
function life(fails = false): { readonly deeds: OpenDeeds; readonly sent: NewRecord[] } {
  const sent: NewRecord[] = []
  const take = async (record: NewRecord) => {
    if (fails) throw new TypeError('no recorder')
    sent.push(record)
  }
  const sink: StagedSink = {
    require: take,
    requireWritten: async (record) => ({ durable: take(record) }),
    note: (record) => void sent.push(record),
    flush: async () => {},
  }
  return { deeds: new OpenDeeds(sink, { dir, log, toldFromRows: new Set<Point>(['command.run']) }), sent }
}

/** What the next life says of this one. */
async function nextLife(isToldElsewhere = false): Promise<readonly NewRecord[]> {
  const { deeds, sent } = life()
  await deeds.tellLeft(async () => isToldElsewhere)
  return sent
}

const record = (status: NewRecord['status'], more: Partial<NewRecord> = {}): NewRecord => ({
  tenant: 'default',
  agent: 'default',
  sandbox: 'sbx_1',
  actor: 'key:x',
  point: 'sandbox.limit',
  status,
  payload: { requestId: 'req_1' },
  ...more,
})

it('tells in the next life that the outcome of what was begun is unknown, once', async () => {
  const first = life()
  await first.deeds.require(record('requested'))
  first.deeds.note(record('requested', { point: 'sandbox.pause' }))
  expect(await nextLife()).toEqual([record('unknown'), record('unknown', { point: 'sandbox.pause' })])
  expect(await nextLife()).toEqual([])
})

it('says nothing of what has its end, was never recorded, or is told from rows', async () => {
  const first = life()
  await first.deeds.require(record('requested'))
  first.deeds.note(record('done', { payload: { requestId: 'req_1', pids: 40 } }))
  await first.deeds.require(record('requested', { point: 'command.run' }))
  await expect(life(true).deeds.require(record('requested'))).rejects.toThrow('no recorder')
  expect(await nextLife()).toEqual([])
})

it('leaves to others what they tell', async () => {
  await life().deeds.require(record('requested'))
  expect(await nextLife(true)).toEqual([])
  expect(await nextLife()).toEqual([])
})

it('tells two requests of the same kind apart', async () => {
  const first = life()
  await first.deeds.require(record('requested'))
  await first.deeds.require(record('requested', { payload: { requestId: 'req_2' } }))
  first.deeds.note(record('failed'))
  expect(await nextLife()).toEqual([record('unknown', { payload: { requestId: 'req_2' } })])
})

it('passes on under which id a note goes, and who hears of it', () => {
  const heard: unknown[] = []
  const sink: StagedSink = {
    require: async () => {},
    requireWritten: async () => ({ durable: Promise.resolve() }),
    note: (_record, options) => void heard.push(options),
    flush: async () => {},
  }
  const options = { rid: 'rec_1', onSettled: () => {} }
  new OpenDeeds(sink, { dir, log, toldFromRows: new Set<Point>() }).note(record('done'), options)
  expect(heard).toEqual([options])
})

it('keeps no secret on disk that evidence would not keep', async () => {
  await life().deeds.require(record('requested', { payload: { requestId: 'req_1', password: 'correct-horse' } }))
  expect(readFileSync(join(dir, 'notes.ndjson'), 'utf8')).not.toContain('correct-horse')
})
