import type { NoteOptions, StagedSink } from '@airlock/audit'
import type { NewRecord } from '@airlock/contract'
import { deadline, waitFor } from '@airlock/std'
import { expect, it } from 'vitest'
import { CountedRefusals } from './counted-refusals.ts'

const BOUNDS = { windowMs: 60_000, perCaller: 4, perKind: 2, callers: 2 }

it('writes the first refusals of a caller, counts the others by kind, and loses none at the end', async () => {
  const { sink, notes } = open()
  for (let at = 0; at < 100; at++) sink.note(refusal('listKeys', { agent: 'a', sandbox: `s${at}` }))
  for (let at = 0; at < 10; at++) sink.note(refusal('listTenants'))
  expect(notes.map(({ payload }) => payload)).toEqual([
    ...Array.from({ length: 4 }, () => ({ route: 'listKeys', requestId: 'req_1' })),
    ...Array.from({ length: 2 }, () => ({ route: 'listTenants', requestId: 'req_1' })),
  ])
  await sink.flush(0)
  const { payload: _payload, ...rest } = refusal('listKeys')
  expect(notes.slice(6)).toEqual([
    { ...rest, agent: 'a', sandbox: null, payload: { refusals: 96, route: 'listKeys' } },
    { ...rest, agent: null, sandbox: null, payload: { refusals: 8, route: 'listTenants' } },
  ])
})

it('counts each caller for itself', () => {
  const { sink, notes } = open()
  for (let at = 0; at < 100; at++) sink.note(refusal('listKeys'))
  sink.note(refusal('listKeys', { actor: 'key:two' }))
  expect(notes.at(-1)).toEqual(refusal('listKeys', { actor: 'key:two' }))
})

it('writes the count when the window is over, and begins anew', async () => {
  const { sink, notes } = open({ ...BOUNDS, windowMs: 20 })
  for (let at = 0; at < 7; at++) sink.note(refusal('listKeys'))
  await waitFor(() => (notes.length === 5 ? true : undefined), { signal: deadline(100_000), everyMs: 5 })
  expect(notes[4]?.payload).toEqual({ refusals: 3, route: 'listKeys' })
  sink.note(refusal('listKeys'))
  expect(notes[5]).toEqual(refusal('listKeys'))
})

it('knows a bounded number of callers, and writes the count of whom it forgets', () => {
  const { sink, notes } = open()
  for (const actor of ['key:one', 'key:two', 'key:three'])
    for (let at = 0; at < 5; at++) sink.note(refusal('listKeys', { actor }))
  expect(notes.filter(({ payload }) => payload?.['refusals'] !== undefined).map(({ actor }) => actor)).toEqual([
    'key:one',
  ])
})

it('lets everything pass that is no refusal', () => {
  const { sink, notes } = open()
  for (let at = 0; at < 100; at++) sink.note({ ...refusal('listKeys'), status: 'done' })
  expect(notes).toHaveLength(100)
})

it('passes on under which id a note goes, and who hears of it', () => {
  const { sink, options } = open()
  const asked = { rid: 'rec_1', onSettled: () => {} }
  sink.note({ ...refusal('listKeys'), status: 'done' }, asked)
  expect(options).toEqual([asked])
})

function open(bounds = BOUNDS) {
  const notes: NewRecord[] = []
  const options: (NoteOptions | undefined)[] = []
  const to: StagedSink = {
    require: async () => {},
    requireWritten: async () => ({ durable: Promise.resolve() }),
    note: (record, more) => {
      notes.push(record)
      options.push(more)
    },
    flush: async () => {},
  }
  return { sink: new CountedRefusals(to, bounds), notes, options }
}

function refusal(route: string, changes: Partial<NewRecord> = {}): NewRecord {
  return {
    tenant: 'default',
    actor: 'key:one',
    point: 'auth.refuse',
    status: 'denied',
    error: { code: 'forbidden', message: 'No.' },
    payload: { route, requestId: 'req_1' },
    ...changes,
  }
}
