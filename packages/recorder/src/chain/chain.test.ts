import { createSecretKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { canonical, verifyExport } from '@airlock/audit'
import { type AuditRecord, auditQuery, newRecord } from '@airlock/contract'
import { createLog, newId } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memoryDir } from '../../../../test/support/memory-dir.ts'
import { Archive } from './archive.ts'
import { type OpenFile, openSegment, type SegmentFile } from './chain-file.ts'
import { Chain, type ChainOptions, type Entry } from './chain.ts'
import { exportChain } from '../reading/export.ts'
import type { RecorderKeys } from '../keys.ts'
import { queryChain, toAsked } from '../reading/query.ts'
import { cutDoubtful, recoverChain } from './recover.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const publicPem = publicKey.export({ format: 'pem', type: 'spki' }).toString()
const keys: RecorderKeys = { signing: privateKey, public: publicKey, publicPem, mac: createSecretKey(randomBytes(32)) }
const log = createLog({ process: 'recorder', level: 'silent', write: () => {} })

let dir: string
let chains: Chain[]

beforeEach(() => {
  dir = mkdtempSync(join(memoryDir(), 'airlock-chain-'))
  chains = []
})

afterEach(async () => {
  for (const chain of chains) await chain.close()
  rmSync(dir, { recursive: true })
})

describe('a chain', () => {
  it('writes what the clock says, in the order of its numbers, and a record at each edge of a jump', async () => {
    let now = Date.parse('2026-01-01T00:00:10.000Z')
    let elapsed = 0
    const times = { clock: { now: () => now }, elapsed: () => elapsed }
    const pass = (ms: number): void => {
      now += ms
      elapsed += ms
    }
    const chain = makeChain(times)
    await chain.append(entry(1))
    pass(1000)
    now += Date.parse('2036-01-01') - Date.parse('2026-01-01')
    await chain.append(entry(2))
    pass(60_000)
    await chain.append(entry(3))
    now -= Date.parse('2036-01-01') - Date.parse('2026-01-01')
    await chain.append(entry(4))
    await chain.close()
    // Down for a while, as far as anybody can tell.
    now += 3_600_000
    const again = await reopen(times)
    await again.append(entry(5))
    await again.close()
    now -= 7_200_000
    const last = await reopen(times)
    await last.append(entry(6))
    const records = await recordsOf(last)
    expect(records.map(({ ts, point, payload }) => [ts, payload['n'] ?? point])).toEqual([
      ['2026-01-01T00:00:10.000Z', 1],
      ['2036-01-01T00:00:11.000Z', 'recorder.clock'],
      ['2036-01-01T00:00:11.000Z', 2],
      ['2036-01-01T00:01:11.000Z', 3],
      ['2026-01-01T00:01:11.000Z', 'recorder.clock'],
      ['2026-01-01T00:01:11.000Z', 4],
      ['2026-01-01T01:01:11.000Z', 5],
      ['2025-12-31T23:01:11.000Z', 'recorder.clock'],
      ['2025-12-31T23:01:11.000Z', 6],
    ])
    expect(records[1]?.payload).toEqual({
      from: '2026-01-01T00:00:11.000Z',
      to: '2036-01-01T00:00:11.000Z',
      byMs: Date.parse('2036-01-01') - Date.parse('2026-01-01'),
    })
    expect(await verify(last)).toMatchObject({ ok: true, records: 9 })
  })

  it('finds records by their time also where the clock went back', async () => {
    let now = Date.parse('2026-01-01T00:00:00.000Z')
    const chain = makeChain({ clock: { now: () => now }, segmentBytes: 1500 })
    const days = ['01', '05', '02', '03', '06', '04']
    for (const day of days) {
      now = Date.parse(`2026-01-${day}T00:00:00.000Z`)
      await chain.append(entry(Number(day)))
    }
    const since = async (from: string) => {
      const query = auditQuery.parse({ limit: 100, since: `2026-01-${from}T00:00:00.000Z` })
      const { records, nextCursor } = await queryChain({ chain, archive: await openArchive() }, toAsked(query))
      return [records.map(({ payload }) => payload['n']), nextCursor]
    }
    expect(await since('04')).toEqual([[4, 6, 5], null])
    expect(await since('02')).toEqual([[4, 6, 3, 2, 5], null])
  })

  it('goes on in new segments, and is one chain over all of them', async () => {
    const chain = makeChain({ segmentBytes: 2000 })
    for (let n = 1; n <= 20; n++) await chain.append(entry(n))
    expect(readdirSync(dir).filter((name) => name.endsWith('.ndjson')).length).toBeGreaterThan(3)
    expect(await verify(chain)).toMatchObject({ ok: true, records: 20 })
    await chain.close()
    const again = await reopen({ segmentBytes: 2000 })
    await again.append(entry(21))
    expect(await verify(again)).toMatchObject({ ok: true, records: 21 })
  })

  it('signs a head every thousand records, in the chain and beside it', async () => {
    const chain = makeChain({})
    await Promise.all(Array.from({ length: 2500 }, async (_, n) => chain.append(entry(n + 1))))
    const signed = (await exportOf(chain)).filter((line) => line.includes('"signature"'))
    const heads = signed.map((line): number => JSON.parse(line).seq)
    // On a slow machine others stand between, for a head is signed every second as well.
    expect(heads.filter((seq) => seq % 1000 === 0)).toEqual([0, 1000, 2000])
    expect(heads.at(-1)).toBe(2500)
    const { seq, tenant } = JSON.parse(readFileSync(join(dir, 'head.json'), 'utf8'))
    expect([seq >= 2000, tenant]).toEqual([true, 'default'])
  })

  it('writes a record that is sent again only once, also after a restart', async () => {
    const chain = makeChain({})
    const first = entry(1)
    await Promise.all([chain.append(first), chain.append(first)])
    await chain.append(first)
    await chain.append(entry(2))
    await chain.close()
    const again = await reopen({})
    await again.append(first)
    expect((await recordsOf(again)).map(({ payload }) => payload)).toEqual([{ n: 1 }, { n: 2 }])
  })

  it('knows its own rid from one that stands in a payload', async () => {
    const chain = makeChain({})
    const later = entry(2)
    await chain.append({ ...entry(1), record: newRecord.parse({ ...entry(1).record, payload: { rid: later.rid } }) })
    await chain.close()
    const again = await reopen({})
    await again.append(later)
    expect(await recordsOf(again)).toHaveLength(2)
  })
})

describe('a chain and its disk', () => {
  it('tells that a record is written before it is on disk, and shows it to nobody until it is', async () => {
    const disk = slow()
    const chain = makeChain({ openFile: disk.open })
    await chain.append(entry(1))
    const synced = disk.hold()
    const written = Promise.withResolvers<void>()
    const done = chain.append({ ...entry(2), onWritten: written.resolve })
    await written.promise
    expect(readFileSync(segmentPath(), 'utf8')).toContain('"n":2')
    expect((await recordsOf(chain)).map(({ payload }) => payload['n'])).toEqual([1])
    synced.resolve()
    await done
    expect((await recordsOf(chain)).map(({ payload }) => payload['n'])).toEqual([1, 2])
  })

  it('writes what nobody waits for at once, in its order, and takes it to the disk with the next', async () => {
    const disk = slow()
    const chain = makeChain({ openFile: disk.open })
    await chain.append(entry(1))
    const before = disk.syncs
    const patient = chain.append({ ...entry(2), patient: true })
    await expect.poll(() => readFileSync(segmentPath(), 'utf8'), { interval: 1 }).toContain('"n":2')
    await Promise.all([patient, chain.append(entry(3))])
    // One for both, or, where the test was slower than its patience, one for each.
    const after = disk.syncs
    expect([before + 1, before + 2]).toContain(after)
    expect((await recordsOf(chain)).map(({ payload }) => payload['n'])).toEqual([1, 2, 3])
    await chain.append({ ...entry(4), patient: true })
    // The timer of the head may add one.
    expect([after + 1, after + 2]).toContain(disk.syncs)
    expect(await verify(chain)).toMatchObject({ ok: true, records: 4 })
  })

  it('refuses what was told to be written when it does not get to the disk, and owes its own records again', async () => {
    const disk = failing({ datasync: 'ENOSPC' })
    const chain = makeChain({ openFile: disk.open })
    await chain.append(entry(1))
    disk.fail()
    const told: string[] = []
    chain.owe(newRecord.parse({ tenant: 'default', actor: 'system', point: 'recorder.start', status: 'done' }))
    const refused = chain.append({ ...entry(2), onWritten: () => told.push('written') })
    await expect(refused).rejects.toMatchObject({ code: 'evidence_unavailable' })
    expect(told).toEqual(['written'])
    await chain.append(entry(3))
    expect((await recordsOf(chain)).map(({ point, payload }) => payload['n'] ?? point)).toEqual([
      1,
      'recorder.start',
      3,
    ])
    expect(await verify(chain)).toMatchObject({ ok: true, records: 3 })
  })
})

describe('a chain on a failing disk', () => {
  it.each([
    ['ENOSPC in the middle of a write', failing({ write: 'ENOSPC' })],
    ['EIO in a write', failing({ write: 'EIO' })],
    ['EIO in a write and then in truncate', failing({ write: 'EIO', truncate: 'EIO' })],
    ['EIO in a sync', failing({ datasync: 'EIO' })],
  ])('refuses what it could not write after %s, and goes on later', async (_name, disk) => {
    const chain = makeChain({ openFile: disk.open })
    await chain.append(entry(1))
    disk.fail()
    const refused = await Promise.allSettled([chain.append(entry(2)), chain.append(entry(3))])
    expect(refused.map((result) => result.status === 'rejected' && result.reason.code)).toEqual([
      'evidence_unavailable',
      'evidence_unavailable',
    ])
    await chain.append(entry(4))
    await chain.append(entry(5))
    expect((await recordsOf(chain)).map(({ seq, payload }) => [seq, payload['n']])).toEqual([
      [1, 1],
      [2, 4],
      [3, 5],
    ])
    expect(await verify(chain)).toMatchObject({ ok: true })
  })

  it('is broken when what was acknowledged is gone after an error', async () => {
    const disk = failing({ write: 'EIO' })
    const chain = makeChain({ openFile: disk.open })
    await chain.append(entry(1))
    disk.fail()
    await expect(chain.append(entry(2))).rejects.toMatchObject({ code: 'evidence_unavailable' })
    const file = segmentPath()
    writeFileSync(file, readFileSync(file, 'utf8').replace('"n":1', '"n":7'))
    await expect(chain.append(entry(3))).rejects.toMatchObject({ code: 'evidence_broken' })
  })
})

describe('recovery', () => {
  it('cuts off a torn last line, keeps it beside, and appends after it', async () => {
    await filled(3)
    appendFileSync(segmentPath(), '{"actor":"key:abc","torn')
    const recovered = await recoverChain({ dir, tenant: 'default', keys })
    expect(recovered).toMatchObject({ torn: { bytes: 24, saved: true }, broken: undefined, position: { seq: 3 } })
    const torn = readdirSync(dir).find((name) => name.endsWith('.torn')) ?? ''
    expect(readFileSync(join(dir, torn), 'utf8')).toBe('{"actor":"key:abc","torn')
    const chain = makeChain({ recovered })
    await chain.append(entry(4))
    expect(await verify(chain)).toMatchObject({ ok: true, records: 4 })
  })

  it('drops a segment that was being made', async () => {
    await filled(3)
    writeFileSync(join(dir, '000000000004.ndjson'), '{"hash":"00')
    const chain = await reopen({})
    await chain.append(entry(4))
    expect(await verify(chain)).toMatchObject({ ok: true, records: 4 })
  })

  const tampered: readonly [string, (text: string) => string, number][] = [
    ['an edited record', (text) => text.replace('"n":3', '"n":4'), 2],
    ['a mac that is not ours', (text) => text.replace(/"mac":"[0-9a-f]{8}/g, '"mac":"00000000'), 0],
    ['a deleted record', (text) => text.split('\n').toSpliced(2, 1).join('\n'), 1],
    ['no head', (text) => text.split('\n').slice(1).join('\n'), 0],
    ['a head that is not ours', (text) => `${text}${text.split('\n')[0]?.replace('"seq":0', '"seq":3')}\n`, 3],
  ]
  it.each(tampered)('lets an unsigned tail with %s be read up to there, and only read', async (_name, tamper, good) => {
    const chain = makeChain({})
    for (let n = 1; n <= 3; n++) await chain.append(entry(n))
    const text = tamper(readFileSync(segmentPath(), 'utf8'))
    writeFileSync(segmentPath(), text)
    const again = await reopen({})
    await expect(again.append(entry(4))).rejects.toMatchObject({ code: 'evidence_broken' })
    expect(() => again.signHead()).toThrow('The evidence of default is broken')
    await again.trustEnd()
    expect(await recordsOf(again)).toHaveLength(good)
    expect(await verify(again)).toMatchObject({
      ok: false,
      brokenAt: good + 1,
      reason: expect.stringContaining('the server signed that the chain does not verify beyond'),
    })
    expect(readFileSync(segmentPath(), 'utf8')).toBe(text)
  })

  const garbage: readonly [string, (record: string) => string][] = [
    ['a line of zeros', () => `${'\0'.repeat(4096)}\n`],
    ['zeros beyond the length of any line', () => `${'\0'.repeat(1_200_000)}\n`],
    ['nonsense, then a record that was written after it', (record) => `\0\0\n${record}\n{"a":1}\n`],
  ]
  it.each(garbage)(
    'waits with %s at its end until somebody knows that none of it was acknowledged',
    async (_name, make) => {
      const chain = makeChain({})
      for (let n = 1; n <= 3; n++) await chain.append(entry(n))
      const lines = readFileSync(segmentPath(), 'utf8').split('\n')
      const bytes = make(lines[3] ?? '')
      writeFileSync(segmentPath(), `${lines.slice(0, 3).join('\n')}\n${bytes}`)
      const again = await reopen({})
      await expect(again.append(entry(3))).rejects.toMatchObject({ code: 'evidence_unavailable' })
      expect(() => again.signHead()).toThrow('is being checked')
      expect(await recordsOf(again)).toHaveLength(2)
      await again.trustEnd()
      await again.append(entry(3))
      expect((await recordsOf(again)).map(({ point, payload }) => [point, payload])).toEqual([
        ['command.run', { n: 1 }],
        ['command.run', { n: 2 }],
        ['recorder.recover', { tornBytes: Buffer.byteLength(bytes), saved: true, after: 2 }],
        ['command.run', { n: 3 }],
      ])
      expect(await verify(again)).toMatchObject({ ok: true, records: 4 })
      const torn = readdirSync(dir).find((name) => name.endsWith('.torn')) ?? ''
      expect(readFileSync(join(dir, torn), 'utf8')).toBe(bytes)
    },
  )

  it('cuts its end once when two ask for it at the same time, and keeps what was cut', async () => {
    await filled(3)
    const garbage = `${'\0'.repeat(5000)}\n`
    appendFileSync(segmentPath(), garbage)
    const chain = await reopen({})
    await Promise.all([chain.trustEnd(), chain.trustEnd().then(async () => chain.append(entry(4)))])
    await chain.trustEnd()
    const points = (await recordsOf(chain)).map(({ point }) => point)
    expect(points.filter((point) => point === 'recorder.recover')).toHaveLength(1)
    expect(await verify(chain)).toMatchObject({ ok: true, records: 5 })
    expect(asides()).toEqual([garbage])
  })

  it('overwrites nothing that was kept aside before', async () => {
    await filled(3)
    const segment = { path: segmentPath(), firstSeq: 1 }
    const { length: from } = readFileSync(segmentPath())
    for (const garbage of ['one\n', 'other\n', 'other\n']) {
      appendFileSync(segmentPath(), garbage)
      expect(await cutDoubtful(dir, { segment, from })).toEqual({ bytes: garbage.length })
      expect(await cutDoubtful(dir, { segment, from })).toEqual({ bytes: 0 })
    }
    const next = { path: join(dir, '000000000004.ndjson'), firstSeq: 4 }
    for (const garbage of ['a\n', 'b\n']) {
      writeFileSync(next.path, garbage)
      await cutDoubtful(dir, { segment: next, from: 0 })
    }
    expect(asides()).toEqual(['one\n', 'other\n', 'a\n', 'b\n'])
  })

  it('goes on when a sealed segment is zeros', async () => {
    const chain = makeChain({ segmentBytes: 2000 })
    for (let n = 1; n <= 12; n++) await chain.append(entry(n))
    await chain.close()
    writeFileSync(segmentPath(), Buffer.alloc(1_200_000))
    const again = await reopen({})
    expect(again.broken).toBeUndefined()
    await again.append(entry(13))
  })

  it('takes a new segment of zeros for what it is, and goes on in the one before', async () => {
    await filled(3)
    writeFileSync(join(dir, '000000000004.ndjson'), `${'\0'.repeat(100)}\n`)
    const chain = await reopen({})
    expect(chain.isDoubtful).toBe(true)
    await chain.trustEnd()
    await chain.append(entry(4))
    expect(await verify(chain)).toMatchObject({ ok: true, records: 5 })
  })

  it.each([
    ['has signed what is missing', () => {}],
    [
      'finds a signed head behind it',
      (head: string) => {
        rmSync(join(dir, 'head.json'))
        appendFileSync(segmentPath(), `${head}\n{"hash":1}\n`)
      },
    ],
  ])('is broken by garbage at its end when it %s', async (_how, more) => {
    const chain = await filled(3)
    const head = canonical(chain.signHead())
    const lines = readFileSync(segmentPath(), 'utf8').split('\n')
    writeFileSync(segmentPath(), `${lines.slice(0, 3).join('\n')}\n\0\0\0\n`)
    more(head)
    const again = await reopen({})
    expect([again.isDoubtful, again.broken]).toEqual([
      false,
      expect.stringMatching(/truncated|neither a record nor a head/),
    ])
  })

  it('sees by head.json that the end of the chain was cut off, or all of it', async () => {
    await filled(3)
    const file = segmentPath()
    truncateSync(file, readFileSync(file, 'utf8').indexOf('\n') + 1)
    expect((await reopen({})).broken).toBe('the chain is truncated: head.json is at 3')
    rmSync(file)
    expect((await reopen({})).broken).toBe('the chain is gone')
    writeFileSync(join(dir, 'head.json'), '{}')
    expect((await reopen({})).broken).toBe('head.json does not verify')
  })

  it('does not append to a file that someone else wrote to', async () => {
    const chain = await filled(1)
    appendFileSync(segmentPath(), 'x\n')
    await expect(chain.append(entry(2))).rejects.toMatchObject({ code: 'evidence_broken' })
  })
})

describe('a query', () => {
  it('answers newest first, in pages, over segments', async () => {
    const chain = makeChain({ segmentBytes: 2000 })
    for (let n = 1; n <= 12; n++) await chain.append(entry(n))
    const pages: unknown[] = []
    let cursor: string | null | undefined
    do {
      const page = await query(chain, { limit: 5, ...(cursor ? { cursor } : {}) })
      pages.push(page.records.map(({ seq }) => seq))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(pages).toEqual([
      [12, 11, 10, 9, 8],
      [7, 6, 5, 4, 3],
      [2, 1],
    ])
  })

  it('filters by agent, sandbox, point, status and time', async () => {
    let now = Date.parse('2026-01-01T00:00:00.000Z')
    const chain = makeChain({ clock: { now: () => (now += 1000) } })
    await chain.append(entry(1, { agent: 'a', sandbox: 's' }))
    await chain.append(entry(2, { agent: 'b', point: 'file.read' }))
    await chain.append(entry(3, { agent: 'a', status: 'failed' }))
    const all = await recordsOf(chain)
    const found = async (filter: object) => (await query(chain, filter)).records.map(({ seq }) => seq)
    expect(await found({ agent: 'a' })).toEqual([3, 1])
    expect(await found({ sandbox: 's' })).toEqual([1])
    expect(await found({ point: 'file.read' })).toEqual([2])
    expect(await found({ status: 'failed' })).toEqual([3])
    expect(await found({ since: all[1]?.ts })).toEqual([3, 2])
    expect(await found({ until: all[1]?.ts })).toEqual([2, 1])
  })

  it('answers a page that fits one line of the protocol, and says where to go on', async () => {
    const chain = makeChain({})
    const payload = { text: 'x'.repeat(4000), more: Array.from({ length: 14 }, () => 'y'.repeat(4000)) }
    for (let n = 1; n <= 12; n++) await chain.append(entry(n, { payload }))
    const page = await query(chain, { limit: 1000 })
    expect(JSON.stringify(page).length).toBeLessThan(1024 * 1024)
    const rest = await query(chain, { limit: 1000, cursor: page.nextCursor })
    expect([...page.records, ...rest.records].map(({ seq }) => seq)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
  })
})

function makeChain(options: Partial<ChainOptions>): Chain {
  const clock = { now: () => Date.now() }
  const chain = new Chain({ dir, tenant: 'default', keys, log, clock, failpoint: async () => {}, ...options })
  chains.push(chain)
  return chain
}

async function reopen(options: Partial<ChainOptions>): Promise<Chain> {
  return makeChain({ ...options, recovered: await recoverChain({ dir, tenant: 'default', keys }) })
}

/** A chain of `count` records under a signed head, at rest. */
async function filled(count: number): Promise<Chain> {
  const chain = makeChain({})
  for (let n = 1; n <= count; n++) await chain.append(entry(n))
  await chain.close()
  return chain
}

function entry(n: number, fields: object = {}): Entry {
  const record = { tenant: 'default', actor: 'system', point: 'command.run', status: 'done', payload: { n }, ...fields }
  return { rid: newId('rec'), process: 'control-plane', record: newRecord.parse(record) }
}

/** What was cut off, by the names of the files. */
function asides(): string[] {
  const names = readdirSync(dir).filter((name) => name.includes('.torn'))
  return names.toSorted().map((name) => readFileSync(join(dir, name), 'utf8'))
}

function segmentPath(): string {
  return join(dir, '000000000001.ndjson')
}

async function exportOf(chain: Chain): Promise<string[]> {
  return Array.fromAsync(exportChain(chain, await openArchive()))
}

async function verify(chain: Chain) {
  return verifyExport(await exportOf(chain), { publicKey: publicPem })
}

async function query(chain: Chain, filter: object) {
  return queryChain({ chain, archive: await openArchive() }, toAsked(auditQuery.parse(filter)))
}

async function openArchive(): Promise<Archive> {
  return Archive.open({ dir, tenant: 'default', keys }, log)
}

/** Oldest first. */
async function recordsOf(chain: Chain): Promise<AuditRecord[]> {
  return (await query(chain, { limit: 1000 })).records.toReversed()
}

/** Real files whose syncs are counted, and the next one can be held up. */
function slow() {
  let syncs = 0
  let gate: Promise<void> = Promise.resolve()
  const openFile: OpenFile = async (path, flags) => {
    const file = await openSegment(path, flags)
    const datasync = async () => {
      syncs++
      await gate
      await file.datasync()
    }
    return { ...file, datasync }
  }
  const hold = () => {
    const held = Promise.withResolvers<void>()
    gate = held.promise
    return held
  }
  return {
    open: openFile,
    hold,
    get syncs() {
      return syncs
    },
  }
}

/** Real files whose next calls of these kinds fail once; a write does half of its work first. */
function failing(codes: Readonly<Partial<Record<'write' | 'datasync' | 'truncate', string>>>) {
  let due: Record<string, string | undefined> = {}
  const failOnce = (kind: string) => {
    const code = due[kind]
    due[kind] = undefined
    if (code !== undefined) throw Object.assign(new TypeError(code), { code })
  }
  const wrap = (file: SegmentFile): SegmentFile => ({
    ...file,
    write: (bytes, from, at) => {
      const half = due['write'] === undefined ? bytes : bytes.subarray(0, Math.ceil(bytes.length / 2))
      const written = file.write(half, from, at)
      failOnce('write')
      return written
    },
    datasync: async () => {
      failOnce('datasync')
      await file.datasync()
    },
    truncate: async (size) => {
      failOnce('truncate')
      await file.truncate(size)
    },
  })
  const openFile: OpenFile = async (path, flags) => wrap(await openSegment(path, flags))
  return { fail: () => (due = { ...codes }), open: openFile }
}
