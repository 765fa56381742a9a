import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { AuditRecord, SignedHead } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { canonical } from './canonical.ts'
import { type ChainPosition, GENESIS, hashRecord } from './chain.ts'
import { signDropped, signHead } from './head.ts'
import { verifyExport } from './verify.ts'

const TS = '2026-01-01T00:00:00.000Z'
const ours = generateKeyPairSync('ed25519')
const theirs = generateKeyPairSync('ed25519')
const publicKey = pem(ours.publicKey)

describe('verifyExport', () => {
  it('accepts a chain, and says what is in it', async () => {
    const log = chain(10, { headEvery: 4 })
    expect(await verifyExport(log, { publicKey })).toEqual({
      ok: true,
      tenant: 'default',
      records: 10,
      firstSeq: 1,
      lastSeq: 10,
      heads: 3,
      lastHead: parseHead(log.at(-1)),
      isWhole: false,
      dropped: null,
      quarantined: [],
      head: 'none',
    })
  })

  it('accepts a stream of lines, and the export of a chain that is empty', async () => {
    async function* stream() {
      yield headLine({ seq: 0, hash: GENESIS })
    }
    expect(await verifyExport(stream(), { publicKey })).toMatchObject({ ok: true, records: 0, firstSeq: 0, lastSeq: 0 })
  })

  const other = chain(10, { tenant: 'other' })
  const rewritten = chain(10, { salt: 'rewritten' })
  const lineOf = (log: readonly string[], seq: number) => log[seq - 1] ?? ''
  // In a chain of ten records with one head at the end, line n is record n and line 11 the head.
  const tampered: readonly [string, number, (log: string[]) => string[]][] = [
    ['an edited payload', 4, (log) => edit(log, 4, (record) => ({ ...record, payload: { n: 99 } }))],
    ['an edited record with its hash made anew', 5, (log) => edit(log, 4, (record) => seal({ ...record, actor: 'x' }))],
    ['an added field', 4, (log) => edit(log, 4, (record) => ({ ...record, note: 'x' }))],
    [
      'an added __proto__',
      4,
      (log) => log.with(3, lineOf(log, 4).replace('"payload":{', '"payload":{"__proto__":{},')),
    ],
    ['a field given twice', 4, (log) => log.with(3, lineOf(log, 4).replace('{', '{"actor":"mallory",'))],
    ['white space', 4, (log) => log.with(3, lineOf(log, 4).replace('{', '{ '))],
    ['a line that is not JSON', 4, (log) => log.with(3, 'not json')],
    ['a line nested too deep', 4, (log) => log.with(3, '['.repeat(400_000))],
    ['a line that is too long', 4, (log) => log.with(3, `"${'x'.repeat(1024 * 1024)}"`)],
    ['two records in each other’s place', 4, (log) => log.with(3, lineOf(log, 5)).with(4, lineOf(log, 4))],
    ['a record of another tenant', 4, (log) => log.with(3, lineOf(other, 4))],
    ['a record of another chain of the same tenant', 4, (log) => log.with(3, lineOf(rewritten, 4))],
    ['the end of another chain', 7, (log) => [...log.slice(0, 6), ...rewritten.slice(6)]],
    ['a record twice', 4, (log) => log.toSpliced(4, 0, lineOf(log, 4))],
    ['a deleted record', 4, (log) => log.toSpliced(3, 1)],
    ['a deleted first record', 1, (log) => log.slice(1)],
    ['a deleted last record', 10, (log) => log.toSpliced(9, 1)],
    ['a truncated end', 8, (log) => log.slice(0, 7)],
    ['only the last head gone', 11, (log) => log.slice(0, 10)],
    ['nothing left', 1, () => []],
    ['a truncated end with a forged head', 7, (log) => [...log.slice(0, 7), forgedHead(log, 7)]],
    ['a head that was edited', 10, (log) => log.with(10, lineOf(log, 11).replace(TS, '2027-01-01T00:00:00.000Z'))],
    ['a head in the wrong place', 8, (log) => [...log.slice(0, 7), lineOf(log, 11)]],
    ['records made anew under the old head', 1, (log) => [...rewritten.slice(0, 10), lineOf(log, 11)]],
  ]
  it.each(tampered)('names the record of %s', async (_name, brokenAt, tamper) => {
    expect(await verifyExport(tamper(chain(10)), { publicKey })).toMatchObject({ ok: false, brokenAt })
  })

  it('names the first record that no good head covers when the end was made anew', async () => {
    const log = chain(10, { headEvery: 4 })
    const end = records(10, { salt: 'rewritten', from: positionAt(log, 4), seq: 4 })
    const forged = [...log.slice(0, 5), ...end.slice(0, 4), log[9] ?? '']
    expect(await verifyExport(forged, { publicKey })).toEqual({
      ok: false,
      brokenAt: 5,
      line: 10,
      reason: 'the records from here to 8 are not those that were signed',
    })
  })

  it('refuses a chain that was signed by another key', async () => {
    expect(await verifyExport(chain(3), { publicKey: pem(theirs.publicKey) })).toEqual({
      ok: false,
      brokenAt: 3,
      line: 4,
      reason: 'the head is not signed by this key',
    })
  })

  it('shows with a head kept elsewhere that the log was truncated to an earlier head', async () => {
    const log = chain(10, { headEvery: 4 })
    const cut = log.slice(0, 5)
    expect(await verifyExport(cut, { publicKey })).toMatchObject({ ok: true, lastSeq: 4 })
    expect(await verifyExport(cut, { publicKey, head: parseHead(log.at(-1)) })).toMatchObject({
      ok: false,
      brokenAt: 5,
    })
    expect(await verifyExport(log, { publicKey, head: parseHead(log[4]) })).toMatchObject({ ok: true })
  })

  it('shows with a head kept elsewhere that the log was made anew with our own key', async () => {
    const head = parseHead(chain(6).at(-1))
    expect(await verifyExport(rewritten, { publicKey, head })).toMatchObject({ ok: false, brokenAt: 6 })
    expect(await verifyExport(other, { publicKey, head })).toMatchObject({ ok: false, brokenAt: 1 })
  })

  it('does not believe a given head that is forged', async () => {
    const head: SignedHead = { ...parseHead(chain(10).at(-1)), seq: 9 }
    expect(await verifyExport(chain(10), { publicKey, head })).toMatchObject({ ok: false, brokenAt: 9 })
  })

  it('accepts a chain whose beginning was dropped, from the signed statement of that on', async () => {
    const log = retained(10, 4)
    expect(await verifyExport(log, { publicKey })).toMatchObject({
      ok: true,
      records: 6,
      firstSeq: 5,
      lastSeq: 10,
      dropped: { seq: 4 },
      head: 'none',
    })
    const before = parseHead(chain(10, { headEvery: 2 })[2])
    expect(await verifyExport(log, { publicKey, head: before })).toMatchObject({ ok: true, head: 'dropped' })
    expect(await verifyExport(log, { publicKey, head: parseHead(log.at(-1)) })).toMatchObject({ head: 'holds' })
  })

  const cut: readonly [string, number, (log: string[]) => string[]][] = [
    ['the statement gone', 1, (log) => log.slice(1)],
    ['more gone than the statement says', 5, (log) => log.toSpliced(2, 2)],
    ['another seq in the statement', 1, (log) => log.with(0, (log[0] ?? '').replace('"seq":4', '"seq":5'))],
    ['a statement of somebody else', 1, (log) => log.with(0, dropped(chain(10), 4, theirs.privateKey))],
    ['the statement of another chain', 4, (log) => log.with(0, dropped(rewritten, 4, ours.privateKey))],
    ['a statement in the middle', 7, (log) => log.toSpliced(4, 0, log[0] ?? '')],
    ['an edited record behind it', 6, (log) => log.with(3, (log[3] ?? '').replace('"n":6', '"n":7'))],
  ]
  it.each(cut)('names the record of a chain with %s', async (_name, brokenAt, tamper) => {
    expect(await verifyExport(tamper(retained(10, 4)), { publicKey })).toMatchObject({ ok: false, brokenAt })
  })

  it('refuses a key that is none', async () => {
    await expect(verifyExport([], { publicKey: 'x' })).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

interface ChainOf {
  readonly tenant?: string
  readonly salt?: string
  readonly headEvery?: number
  readonly from?: string
  readonly seq?: number
}

/** Records 1 to `count`, heads between them, and one at the end. */
function chain(count: number, of: ChainOf = {}): string[] {
  const lines: string[] = []
  for (const line of records(count, of)) {
    lines.push(line)
    const { seq, hash }: AuditRecord = JSON.parse(line)
    if (seq === count || seq % (of.headEvery ?? count) === 0) lines.push(headLine({ seq, hash }, of.tenant))
  }
  return lines
}

/** The same after retention dropped the first: a statement, the head at the begin of what is left, and the rest. */
function retained(count: number, upTo: number): string[] {
  const log = chain(count)
  const head = headLine({ seq: upTo, hash: positionAt(log, upTo) })
  return [dropped(log, upTo, ours.privateKey), head, ...log.slice(upTo)]
}

function dropped(log: readonly string[], seq: number, key: KeyObject): string {
  const gone = { newest: TS, segments: 1, bytes: 100 }
  return canonical(signDropped(key, { tenant: 'default', seq, hash: positionAt(log, seq), ts: TS, dropped: gone }))
}

function records(count: number, { tenant = 'default', salt = '', from = GENESIS, seq = 0 }: ChainOf): string[] {
  const lines: string[] = []
  let prev = from
  for (let n = seq + 1; n <= count; n++) {
    const who = { tenant, agent: null, sandbox: null, actor: 'system', process: 'control-plane' }
    const what = { point: 'command.run', status: 'done', payload: { n, salt }, ts: TS, late: false } as const
    const unsealed = { ...who, ...what, seq: n, prev }
    prev = hashRecord(unsealed)
    lines.push(canonical({ ...unsealed, hash: prev }))
  }
  return lines
}

function headLine(at: ChainPosition, tenant = 'default', key: KeyObject = ours.privateKey): string {
  return canonical(signHead(key, { tenant, ts: TS, ...at }))
}

function forgedHead(log: readonly string[], seq: number): string {
  return headLine({ seq, hash: positionAt(log, seq) }, 'default', theirs.privateKey)
}

function positionAt(log: readonly string[], seq: number): string {
  const line = log.find((text) => text.includes(`"seq":${seq},`)) ?? ''
  const { hash }: AuditRecord = JSON.parse(line)
  return hash
}

function edit(log: readonly string[], seq: number, change: (record: AuditRecord) => object): string[] {
  return log.with(seq - 1, canonical(change(JSON.parse(log[seq - 1] ?? ''))))
}

function seal({ hash: _hash, ...record }: AuditRecord): AuditRecord {
  return { ...record, hash: hashRecord(record) }
}

function parseHead(line: string | undefined): SignedHead {
  return JSON.parse(line ?? '')
}

function pem(key: KeyObject): string {
  return key.export({ format: 'pem', type: 'spki' }).toString()
}
