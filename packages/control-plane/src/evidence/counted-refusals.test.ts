import { createHash } from 'node:crypto'
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

it('writes what Guardian denies, however many other refusals there were, and counts it by sandbox and rule', async () => {
  const { sink, notes } = open()
  for (let at = 0; at < 100; at++) sink.note(refusal('listKeys'))
  for (let at = 0; at < 10; at++) sink.note(denial('house/a', { sandbox: 'one' }, `a ${at}`))
  sink.note(denial('house/b', { sandbox: 'one' }, 'b'))
  for (let at = 10; at < 12; at++) sink.note(denial('house/a', { sandbox: 'two' }, `a ${at}`))
  expect(notes.slice(4)).toEqual([
    ...Array.from({ length: 4 }, (_, at) => denial('house/a', { sandbox: 'one' }, `a ${at}`)),
    // The first of its kind.
    denial('house/b', { sandbox: 'one' }, 'b'),
  ])
  await sink.flush(0)
  const { payload: _payload, decision: _decision, ...rest } = denial('house/a', {}, '')
  const digest = (from: number, to: number) => sha256(lines(from, to, (at) => `{"argv":["a ${at}"],"env":[]}\n`))
  expect(notes.slice(9)).toEqual([
    { ...refusal('listKeys'), agent: null, sandbox: null, payload: { refusals: 96, route: 'listKeys' } },
    { ...rest, sandbox: 'one', payload: { refusals: 6, rule: 'house/a', sha256: digest(4, 10) } },
    { ...rest, sandbox: 'two', payload: { refusals: 2, rule: 'house/a', sha256: digest(10, 12) } },
  ])
})

it('keeps what Guardian asks about from hiding what it denies', () => {
  const { sink, notes } = open()
  for (let at = 0; at < 100; at++) sink.note(denial('house/ask', {}, `${at}`, 'ask'))
  const written = notes.length
  for (let at = 0; at < 4; at++) sink.note(denial('house/deny', {}, `${at}`))
  expect(notes).toHaveLength(written + 4)
})

it('tells a bounded number of rules and sandboxes of a caller apart', async () => {
  const { sink, notes } = open({ ...BOUNDS, kinds: 3, counts: 2 })
  for (let at = 0; at < 100; at++) sink.note(denial(`opa/${at}`, { sandbox: `s${at}` }, 'x'))
  await sink.flush(0)
  const counts = notes.filter(({ payload }) => payload?.['refusals'] !== undefined)
  expect(notes.length).toBeLessThan(20)
  expect(counts.reduce((sum, { payload }) => sum + Number(payload?.['refusals']), 0)).toBe(
    100 - (notes.length - counts.length),
  )
  expect(counts.at(-1)).toMatchObject({ sandbox: null, payload: { rule: null } })
})

it('digests no secret of a line', async () => {
  const { sink, notes } = open({ ...BOUNDS, perCaller: 0, perKind: 0 })
  sink.note(denial('house/a', { actor: 'key:one' }, '--password=one'))
  sink.note(denial('house/a', { actor: 'key:two' }, '--password=two'))
  await sink.flush(0)
  expect(notes[0]?.payload).toEqual(notes[1]?.payload)
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

function open(bounds: ConstructorParameters<typeof CountedRefusals>[1] = BOUNDS) {
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

/** As Guardian records what it refuses. */
function denial(rule: string, changes: Partial<NewRecord>, line: string, effect: 'deny' | 'ask' = 'deny'): NewRecord {
  const [policy = '', id = ''] = rule.split('/')
  const matched = { policy, rule: id, effect, risk: 'high', reason: 'Tested.' } as const
  return {
    tenant: 'default',
    actor: 'key:one',
    point: 'command.run',
    status: 'denied',
    agent: 'a',
    error: { code: effect === 'deny' ? 'policy_denied' : 'approval_required', message: 'No.' },
    decision: { effect, risk: 'high', rules: [matched], conditions: {}, policyVersion: 'house@1' },
    payload: { requestId: `req_${line}`, command: `cmd_${line}`, argv: [line], env: [] },
    ...changes,
  }
}

function lines(from: number, to: number, line: (at: number) => string): string {
  return Array.from({ length: to - from }, (_, at) => line(from + at)).join('')
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
