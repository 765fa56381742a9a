import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { verifyExport } from '@airlock/audit'
import type { AuditRecord } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { Archive } from './archive.ts'
import { followChain, pageChain } from '../reading/follow.ts'
import { steadyClock } from './jumps.ts'
import { Retention } from './retention.ts'
import { measure } from '../reading/stats.ts'
import { append, ChainDir, exportLines } from '../testing/chain-dir.ts'
import { PastVerifier } from './verify-past.ts'

const DAY = 24 * 3_600_000
const NEVER = new AbortController().signal
type Place = Awaited<ReturnType<ChainDir['open']>>

describe('retention', () => {
  it('drops whole old segments by age, and what is left verifies from there on', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 10 })
    const before = await exportLines(place)
    const [oldHead] = before.filter((line) => line.includes('"signature"')).slice(1, 2)
    await verifyPast(home, place)
    await enforce(home, place, { days: 4.5 })
    const { dropped } = place.archive
    const verdict = await verify(home, place)
    expect(verdict).toMatchObject({ ok: true, firstSeq: (dropped?.seq ?? 0) + 1, dropped, head: 'none' })
    const kept = records(await exportLines(place))
    expect(Date.parse(kept[0]?.ts ?? '')).toBeGreaterThanOrEqual(home.clock.at - 5.5 * DAY)
    expect(kept.at(-1)).toMatchObject({ point: 'audit.drop', status: 'done', payload: { upTo: dropped?.seq } })
    const rest = records(before).filter(({ seq }) => seq > (dropped?.seq ?? 0))
    expect(kept.slice(0, rest.length)).toEqual(rest)
    const held = { publicKey: home.keys.publicPem, head: JSON.parse(oldHead ?? '') }
    expect(await verifyExport(await exportLines(place), held)).toMatchObject({ ok: true, head: 'dropped' })
  })

  it('goes by the age of files, whatever a clock said that jumped', async () => {
    await using home = new ChainDir()
    home.clock.at += 3650 * DAY
    const { chain } = await grow(home, { days: 1 })
    await chain.close()
    home.clock.at -= 3651 * DAY
    const place = await grow(home, { days: 10 })
    await verifyPast(home, place)
    const [first, second, third] = segmentsIn(home)
    // One was written by a clock that was ten years ahead, one by a clock that was at its beginning.
    const set = (name: string | undefined, at: number) => utimesSync(join(home.dir, name ?? ''), at / 1000, at / 1000)
    set(first, home.clock.at + 3650 * DAY)
    set(third, 0)
    await enforce(home, place, { days: 999 })
    expect(place.archive.dropped).toBeUndefined()
    set(second, home.clock.at - 8 * DAY)
    await enforce(home, place, { days: 7 })
    expect(place.archive.dropped?.dropped.segments).toBeGreaterThanOrEqual(3)
    expect(await verify(home, place)).toMatchObject({ ok: true })
  })

  it('drops nothing because the clock jumps forward while it runs', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 10 })
    await verifyPast(home, place)
    const clock = steadyClock(home.clock, () => 0)
    home.clock.at += 3650 * DAY
    await new Retention({ rules: { days: 30, maxBytes: 1e9, minAgeHours: 0 }, clock, log: home.log }).enforce([place])
    expect(place.archive.dropped).toBeUndefined()
  })

  it('drops nothing that was not found good, nor what is written to', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 5 })
    await enforce(home, place, { days: 1 })
    expect(place.archive.dropped).toBeUndefined()
    await verifyPast(home, place)
    home.clock.at += 100 * DAY
    const open = segmentsIn(home).at(-1)
    await enforce(home, place, { days: 1 })
    expect(segmentsIn(home)[0]).toBe(open)
    expect(await verify(home, place)).toMatchObject({ ok: true })
  })

  it('beyond the bound on size takes from the largest chain, and lets the others be', async () => {
    await using large = new ChainDir()
    await using small = new ChainDir()
    const much = await grow(large, { days: 20 })
    const little = await grow(small, { days: 3 })
    for (const [home, place] of [
      [large, much],
      [small, little],
    ] as const)
      await verifyPast(home, place)
    const bytesOf = async (place: Place) => (await measure(place, { days: 1, maxBytes: 1, minAgeHours: 0 })).bytes
    const maxBytes = (await bytesOf(little)) + Math.floor((await bytesOf(much)) / 2)
    const retention = new Retention({
      rules: { days: 999, maxBytes, minAgeHours: 0 },
      clock: large.clock,
      log: large.log,
    })
    await retention.enforce([little, much])
    expect(little.archive.dropped).toBeUndefined()
    expect(much.archive.dropped?.dropped.segments).toBeGreaterThan(2)
    expect((await bytesOf(much)) + (await bytesOf(little))).toBeLessThan(maxBytes + 4000)
    expect(await verify(large, much)).toMatchObject({ ok: true })
  })

  it('beyond the bound on size drops nothing that is younger than the least age', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 10 })
    await verifyPast(home, place)
    const retention = (minAgeHours: number) =>
      new Retention({ rules: { days: 999, maxBytes: 5000, minAgeHours }, clock: home.clock, log: home.log })
    const young = retention(11 * 24)
    await young.enforce([place])
    expect([place.archive.dropped, young.isFull]).toEqual([undefined, true])
    const some = retention(5 * 24)
    await some.enforce([place])
    expect([place.archive.dropped?.dropped.segments, some.isFull]).toEqual([expect.any(Number), true])
    const kept = records(await exportLines(place))
    expect(Date.parse(kept[0]?.ts ?? '')).toBeGreaterThan(home.clock.at - 7 * DAY)
    const none = retention(0)
    await none.enforce([place])
    expect(segmentsIn(home).length).toBeLessThan(4)
  })

  it.each([
    ['does not verify', (path: string) => change(path, '"n":', '"m":')],
    ['is empty', (path: string) => writeFileSync(path, '')],
    ['is zeros', (path: string) => writeFileSync(path, Buffer.alloc(1_200_000))],
  ])('holds the bound on size for all when an old segment of one chain %s', async (_how, damage) => {
    await using damaged = new ChainDir()
    await using flooded = new ChainDir()
    const { chain } = await grow(damaged, { days: 3 })
    await chain.close()
    flooded.clock.at = damaged.clock.at
    const flood = await grow(flooded, { days: 1 })
    damage(join(damaged.dir, segmentsIn(damaged)[0] ?? ''))
    const old = damaged.clock.at - 3 * DAY
    utimesSync(join(damaged.dir, segmentsIn(damaged)[0] ?? ''), old / 1000, old / 1000)
    damaged.clock.at = flooded.clock.at
    const place = await damaged.open()
    await verifyPast(damaged, place)
    const { clock, log } = flooded
    const retention = new Retention({ rules: { days: 999, maxBytes: 5000, minAgeHours: 48 }, clock, log })
    await retention.enforce([place, flood])
    expect([retention.isOver, retention.isFull]).toEqual([true, true])
    expect(retention.bytes).toBeGreaterThan(5000)
  })

  it('is finished at the next start when it died after its statement, and its record is not missed', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 8 })
    await verifyPast(home, place)
    const names = segmentsIn(home).slice(0, -1)
    for (const name of names) copyFileSync(join(home.dir, name), join(home.dir, `${name}.copy`))
    const dies = new Retention({ rules: { days: 3, maxBytes: 1e9, minAgeHours: 0 }, clock: home.clock, log: home.log })
    // As if it died before it could remove anything or write its record.
    place.chain.appendOwn = async () => Promise.reject(new TypeError('died'))
    await dies.enforce([place])
    expect(place.archive.unrecorded).toEqual(place.archive.dropped)
    await place.chain.close()
    for (const name of names) copyFileSync(join(home.dir, `${name}.copy`), join(home.dir, name))
    for (const name of names) rmSync(join(home.dir, `${name}.copy`))
    const again = await home.open()
    expect(segmentsIn(home).length).toBeLessThan(names.length)
    expect(await verify(home, again)).toMatchObject({ ok: true })
    await verifyPast(home, again)
    await enforce(home, again, { days: 3 })
    const drops = records(await exportLines(again)).filter(({ point }) => point === 'audit.drop')
    expect(drops.map(({ payload }) => payload['upTo'])).toContain(again.archive.dropped?.seq)
    expect(again.archive.unrecorded).toBeUndefined()
  })

  it('goes on dropping when its record cannot be written, and catches up', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 10 })
    await verifyPast(home, place)
    const append = place.chain.appendOwn.bind(place.chain)
    place.chain.appendOwn = async () => Promise.reject(new TypeError('full'))
    await enforce(home, place, { days: 7 })
    const first = place.archive.dropped?.seq ?? 0
    await enforce(home, place, { days: 4 })
    expect(place.archive.dropped?.seq).toBeGreaterThan(first)
    place.chain.appendOwn = append
    await enforce(home, place, { days: 4 })
    expect(place.archive.unrecorded).toBeUndefined()
    const last = records(await exportLines(place)).at(-1)
    expect(last).toMatchObject({ point: 'audit.drop', payload: { upTo: place.archive.dropped?.seq } })
  })

  it('leaves a statement that is whole whenever it dies while it writes one', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 10 })
    await verifyPast(home, place)
    await enforce(home, place, { days: 6 })
    await enforce(home, place, { days: 3 })
    const path = join(home.dir, 'dropped')
    const whole = readFileSync(path)
    const slots = [0, 4096].map((at) => JSON.parse(whole.toString('utf8', at, at + 4096)))
    const newest = slots.findIndex(({ head, recorded }) => recorded && head.seq === place.archive.dropped?.seq)
    writeFileSync(path, Buffer.from(whole).fill(0, newest * 4096 + 20, (newest + 1) * 4096))
    const { dir, tenant, keys, log } = home
    const { dropped } = await Archive.open({ dir, tenant, keys }, log)
    expect(dropped).toEqual(place.archive.dropped)
  })
})

describe.skipIf(process.getuid?.() !== 0)('on a full disk', () => {
  it('drops all the same, for its statement has its place already, and that makes room', async () => {
    await using home = new ChainDir()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'airlock-retention', home.dir])
    try {
      const place = await grow(home, { days: 10 })
      for (const { segment, tally } of home.sealed) await place.archive.seal(segment, tally)
      await verifyPast(home, place)
      fill(join(home.dir, 'filler'))
      await expect(append(place.chain, { payload: { text: 'x'.repeat(9000) } })).rejects.toMatchObject({
        code: 'evidence_unavailable',
      })
      await enforce(home, place, { days: 4 })
      expect(place.archive.dropped?.dropped.segments).toBeGreaterThan(3)
      await append(place.chain, { payload: { text: 'x'.repeat(9000) } })
      expect(await verify(home, place)).toMatchObject({ ok: true, dropped: place.archive.dropped })
      await place.chain.close()
    } finally {
      execFileSync('umount', ['-l', home.dir])
    }
  })
})

describe('a truncated chain is not a retained one', () => {
  it.each([
    ['its first segment is removed by hand', (home: ChainDir) => rmSync(join(home.dir, segmentsIn(home)[0] ?? ''))],
    ['the statement is removed', (home: ChainDir) => rmSync(join(home.dir, 'dropped'))],
    ['the statement is changed', (home: ChainDir) => change(join(home.dir, 'dropped'), /"seq":\d+/g, '"seq":1')],
    [
      'the hash in the statement is changed',
      (home: ChainDir) => change(join(home.dir, 'dropped'), /"hash":"../g, '"hash":"00'),
    ],
    [
      'the first head that is kept is changed',
      (home: ChainDir) => change(join(home.dir, segmentsIn(home)[0] ?? ''), /"hash":"../, '"hash":"00'),
    ],
  ])('when %s', async (_how, tamper) => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 10 })
    await verifyPast(home, place)
    await enforce(home, place, { days: 5 })
    await place.chain.close()
    tamper(home)
    const again = await home.open()
    await expect(exportLines(again)).rejects.toMatchObject({ code: 'evidence_broken' })
    expect(await verifyPast(home, again)).toMatchObject({ at: expect.any(Number), reason: expect.any(String) })
    expect((await measure(again, { days: 1, maxBytes: 1, minAgeHours: 0 })).verification).toMatchObject({
      state: 'broken',
    })
  })
})

describe('what is sealed', () => {
  it('is read again, and one changed byte of it is found, told and never dropped', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 8 })
    expect(await verifyPast(home, place)).toBeUndefined()
    const stats = await measure(place, { days: 1, maxBytes: 1, minAgeHours: 0 })
    expect(stats.verification).toMatchObject({ state: 'good', brokenAt: null })
    expect(stats.verification.verifiedTo).toBeLessThan(stats.lastSeq)
    expect(stats.verification.verifiedTo).toBeGreaterThan(stats.lastSeq - 12)
    const damaged = segmentsIn(home)[2] ?? ''
    change(join(home.dir, damaged), '"n":', '"m":')
    home.clock.at += 2 * DAY
    const again = await home.open()
    const broken = await verifyPast(home, again)
    expect(broken).toMatchObject({ at: Number(damaged.slice(0, 12)) })
    await enforce(home, again, { days: 1 })
    expect(again.archive.dropped?.seq).toBeLessThan(broken?.at ?? 0)
    expect(segmentsIn(home)).toContain(damaged)
  })

  it('stays broken until the very record is found good', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 8 })
    const path = join(home.dir, segmentsIn(home)[3] ?? '')
    const before = readFileSync(path, 'utf8')
    change(path, '"n":', '"m":')
    const verifier = new PastVerifier({ ...place, clock: home.clock })
    const readAll = async () => {
      const states = new Set<string>()
      for (let isDone = false; !isDone;) {
        ;({ isDone } = await verifier.advance(NEVER))
        states.add(place.archive.verification.state)
      }
      return [...states]
    }
    expect(await readAll()).toEqual(['good', 'broken'])
    home.clock.at += 2 * DAY
    expect(await readAll()).toEqual(['broken'])
    writeFileSync(path, before)
    home.clock.at += 2 * DAY
    expect(await readAll()).toEqual(['broken', 'good'])
  })

  it('is also broken when it cannot be read, and that is told', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 4 })
    writeFileSync(join(home.dir, segmentsIn(home)[1] ?? ''), Buffer.alloc(1_200_000))
    expect(await verifyPast(home, place)).toMatchObject({ reason: expect.stringContaining('cannot be read') })
    expect(place.archive.verification.state).toBe('broken')
  })

  it('is also broken when something was added to it', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 4 })
    const path = join(home.dir, segmentsIn(home)[1] ?? '')
    appendFileSync(path, readFileSync(path, 'utf8').split('\n').slice(-2).join('\n'))
    expect(await verifyPast(home, place)).toMatchObject({ at: expect.any(Number) })
    expect(statSync(path).size).toBeGreaterThan(0)
  })
})

describe('who follows a chain', () => {
  it('is told of a gap when what it wants is gone, and goes on behind it', async () => {
    await using home = new ChainDir()
    const place = await grow(home, { days: 10 })
    await verifyPast(home, place)
    await enforce(home, place, { days: 4 })
    const { seq } = place.archive.start
    const stop = new AbortController()
    const heard = []
    for await (const one of followChain(place, { filter: {}, after: 1 }, stop.signal)) {
      heard.push(one)
      if (heard.length === 3) stop.abort()
      if (heard.length === 3) break
    }
    expect(heard).toMatchObject([
      { type: 'at', seq: 1 },
      { type: 'gap', seq },
      { type: 'record', record: { seq: seq + 1 } },
    ])
    expect(await pageChain(place, { filter: {}, after: 1, limit: 1 })).toMatchObject({ gap: seq, after: seq + 1 })
  })

  it('hears what is written while it reads, over new segments, and each once', async () => {
    await using home = new ChainDir()
    const place = await home.open()
    const stop = new AbortController()
    const seen: number[] = []
    const reading = (async () => {
      for await (const one of followChain(place, { filter: {} }, stop.signal)) {
        if (one.type === 'record') seen.push(one.record.seq)
        if (seen.length === 100) break
      }
    })()
    for (let n = 0; n < 100; n++) await append(place.chain, { payload: { n } })
    await reading
    stop.abort()
    expect(seen).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
    expect(segmentsIn(home).length).toBeGreaterThan(5)
  })
})

/** A few records a day. */
async function grow(home: ChainDir, { days }: { readonly days: number }): Promise<Place> {
  const place = await home.open()
  for (let day = 0; day < days; day++) {
    for (let n = 0; n < 12; n++) await append(place.chain, { agent: 'one', payload: { n } })
    home.clock.at += DAY
  }
  return place
}

async function verifyPast(home: ChainDir, place: Place) {
  const verifier = new PastVerifier({ ...place, clock: home.clock })
  for (;;) {
    const { isDone, broken } = await verifier.advance(NEVER)
    if (isDone) return broken
  }
}

async function enforce(home: ChainDir, place: Place, { days }: { readonly days: number }): Promise<void> {
  const rules = { days, maxBytes: 1e9, minAgeHours: 0 }
  await new Retention({ rules, clock: home.clock, log: home.log }).enforce([place])
}

async function verify(home: ChainDir, place: Place) {
  return verifyExport(await exportLines(place), { publicKey: home.keys.publicPem })
}

function segmentsIn(home: ChainDir): string[] {
  return readdirSync(home.dir)
    .filter((name) => name.endsWith('.ndjson'))
    .sort()
}

function records(lines: readonly string[]): AuditRecord[] {
  return lines.map((line) => JSON.parse(line) as AuditRecord).filter((one) => !('signature' in one))
}

function fill(path: string): void {
  try {
    for (;;) writeFileSync(path, Buffer.alloc(512), { flag: 'a' })
  } catch {
    // Full, as it should be.
  }
}

function change(path: string, what: string | RegExp, to: string): void {
  const before = readFileSync(path, 'utf8')
  const after = typeof what === 'string' || !what.global ? before.replace(what, to) : before.replaceAll(what, to)
  writeFileSync(path, after.padEnd(before.length))
}
