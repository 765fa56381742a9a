import { describe, expect, it } from 'vitest'
import { VICTIMS } from '../lifecycle/crash-table.ts'
import type { SampledTable } from '../support/sampled-table.ts'
import { SAMPLED } from '../support/sampled-tables.ts'
import { hash } from '../support/seed.ts'
import { filesMatching } from './repository.ts'

const SEEDS = Array.from({ length: 500 }, (_, seed) => String(seed))

const TABLES: readonly (readonly [string, SampledTable<unknown>])[] = Object.entries(SAMPLED)

describe.each(TABLES)('the sampled table %s', (_, table) => {
  it('has a row of each group with every seed', () => {
    for (const seed of SEEDS)
      expect({ seed, groups: groupsOf(table, table.draw(seed)) }).toEqual({ seed, groups: table.groups.toSorted() })
  })

  it('is drawn alike with one seed, and otherwise with others', () => {
    expect(table.draw('7')).toEqual(table.draw('7'))
    expect(new Set(SEEDS.map((seed) => hash(JSON.stringify(table.draw(seed))))).size).toBeGreaterThan(1)
  })
})

it('a crash table has each process as a victim', () => {
  const victims = [SAMPLED.crash, SAMPLED.crashLong].map(
    (table) => new Set(table.groups.map((name) => name.split(' ')[0])),
  )
  expect(victims).toEqual([new Set(VICTIMS), new Set(VICTIMS)])
})

it('every sampled table is listed', () => {
  const makers = filesMatching(/\.ts$/).filter(({ text }) => /new SampledTable\(/.test(text))
  expect(makers.map(({ path }) => path)).toEqual(['test/support/sampled-tables.ts'])
})

function groupsOf(table: SampledTable<unknown>, rows: readonly unknown[]): readonly string[] {
  return [...new Set(rows.map((row) => table.groupOf(row)))].toSorted()
}
