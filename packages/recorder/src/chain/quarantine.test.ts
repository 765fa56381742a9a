import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { verifyExport } from '@airlock/audit'
import { describe, expect, it } from 'vitest'
import { contradiction } from './contradiction.ts'
import { quarantine } from './quarantine.ts'
import { append, ChainDir, exportLines } from '../testing/chain-dir.ts'

/** Three segments; what follows happens to the files of a recorder that is down. */
const damages: readonly [string, (dir: string, segments: readonly string[]) => void, number][] = [
  ['an edited last record', (dir, segments) => edit(dir, segments.at(-1), /"n":11(.*)\n[^]*/, '"n":99$1\n'), 11],
  ['a last segment that is none', (dir, segments) => writeFileSync(join(dir, segments.at(-1) ?? ''), 'no\nno\n'), 10],
  ['nothing that is good', (dir, segments) => segments.forEach((one) => writeFileSync(join(dir, one), 'no\n')), 0],
  ['a head.json that is not ours', (dir) => writeFileSync(join(dir, 'head.json'), '{}'), 12],
  ['no segments', (dir, segments) => segments.forEach((one) => rmSync(join(dir, one))), 0],
]

describe('a chain with a broken end', () => {
  it.each(damages)('goes on behind %s, with numbers that no record had', async (_what, damage, good) => {
    await using home = new ChainDir()
    const { dir, tenant, keys } = home
    const before = await home.open({ segmentBytes: 2500 })
    for (let n = 0; n < 12; n++) await append(before.chain, { payload: { n } })
    await before.chain.close()
    const stored = (await exportLines(before)).at(-1) ?? ''
    const segments = readdirSync(dir).filter((name) => name.endsWith('.ndjson'))
    damage(dir, segments)
    const broken = await home.open()
    expect(broken.chain.broken).toBeDefined()
    const start = broken.archive.start
    const of = { reason: broken.chain.broken ?? '', by: 'key:me', known: 20, ts: '2026-01-01T00:00:00.000Z', start }
    const statement = await quarantine({ dir, tenant, keys }, of)
    expect(statement.quarantined).toMatchObject({ to: 21, by: 'key:me', reason: of.reason })
    expect(statement.seq).toBeLessThanOrEqual(good)
    const again = await home.open()
    expect([again.chain.broken, again.chain.isDoubtful]).toEqual([undefined, false])
    await append(again.chain, { payload: { n: 'after' } })
    const head = JSON.parse(stored)
    const verdict = await verifyExport(await exportLines(again), { publicKey: keys.publicPem, head })
    expect(verdict).toMatchObject({
      ok: true,
      lastSeq: 22,
      quarantined: [statement],
      head: head.seq > statement.seq ? 'quarantined' : 'holds',
    })
    // The store may still have the head of what was set aside.
    expect(await contradiction(again, { head, rids: [] })).toBeUndefined()
    expect(await contradiction(again, { head: { ...head, seq: 23 }, rids: [] })).toContain(
      'the head in the store is at 23',
    )
    await again.chain.close()
    expect((await home.open()).chain.broken).toBeUndefined()
  })

  it('shows when the statement of it is taken away, changed, or made by another', async () => {
    await using home = new ChainDir()
    const { dir, tenant, keys } = home
    const before = await home.open()
    for (let n = 0; n < 3; n++) await append(before.chain, { payload: { n } })
    await before.chain.close()
    edit(dir, '000000000001.ndjson', /"n":2(.*)\n[^]*/, '"n":3$1\n')
    const { archive } = await home.open()
    await quarantine(
      { dir, tenant, keys },
      { reason: 'r', by: 'b', known: 0, ts: '2026-01-01T00:00:00.000Z', start: archive.start },
    )
    const again = await home.open()
    await append(again.chain)
    const lines = await exportLines(again)
    const at = lines.findIndex((line) => line.includes('"quarantined":'))
    const verify = async (changed: readonly string[]) => verifyExport(changed, { publicKey: keys.publicPem })
    expect(await verify(lines)).toMatchObject({ ok: true })
    expect(await verify(lines.toSpliced(at, 1))).toMatchObject({ ok: false })
    expect(await verify(lines.with(at, lines[at]?.replace('"reason":"r"', '"reason":"s"') ?? ''))).toMatchObject({
      ok: false,
      reason: 'the statement of a quarantine is not signed by this key',
    })
    expect(await verify(lines.toSpliced(at, 0, lines[at] ?? ''))).toMatchObject({
      ok: false,
      reason: 'the statement of a quarantine is out of place',
    })
  })
})

// oxlint-disable-next-line max-params -- a file, and what of it becomes what
function edit(dir: string, name: string | undefined, from: RegExp, to: string): void {
  const path = join(dir, name ?? '')
  writeFileSync(path, readFileSync(path, 'utf8').replace(from, to))
}
