import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Seen } from './monitor.ts'
import { OTHERS, overviewOf } from './overview.ts'
import { RoundCounts } from './round-counts.ts'
import { toSampled } from './tally.ts'
import { aRow, aSample } from './testing/observed.ts'

function seen(id: string, of: { readonly tenant: string; readonly agent: string; readonly memoryBytes: number }): Seen {
  const { memoryBytes, ...whose } = of
  const sample = aSample({ memoryBytes, cpuPercent: 10 })
  return { row: { ...aRow(), id, ...whose }, sample, before: undefined, sampled: toSampled(sample, undefined) }
}

describe('what the node does', () => {
  it('is told in a bounded number of lines that leave nothing out', () => {
    const some = fc.record({
      tenant: fc.nat(70).map((n) => `t${n}`),
      agent: fc.nat(5).map((n) => `a${n}`),
      memoryBytes: fc.nat(2 ** 30),
    })
    fc.assert(
      fc.property(fc.array(some, { maxLength: 400 }), (all) => {
        const latest = all.map((one, i) => seen(`sbx_${i}`, one))
        const { tenants, agents } = overviewOf({ latest: () => latest, counts: new RoundCounts() }, () => [])
        const memory = all.reduce((sum, one) => sum + one.memoryBytes, 0)
        for (const lines of [tenants, agents]) {
          expect(lines.length).toBeLessThanOrEqual(51)
          expect(lines.reduce((sum, { total }) => sum + total.sandboxes, 0)).toBe(all.length)
          expect(lines.reduce((sum, { total }) => sum + total.memoryBytes, 0)).toBe(memory)
        }
      }),
      { numRuns: 30 },
    )
  })

  it('names those that use the most', () => {
    const latest = Array.from({ length: 60 }, (_, i) =>
      seen(`sbx_${i}`, { tenant: 'acme', agent: `agent-${i}`, memoryBytes: i }),
    )
    const { agents } = overviewOf({ latest: () => latest, counts: new RoundCounts() }, () => [])
    expect([agents[0]?.agent, agents[49]?.agent]).toEqual(['agent-59', 'agent-10'])
    expect(agents[50]).toMatchObject({ tenant: OTHERS, agent: OTHERS, total: { sandboxes: 10, memoryBytes: 45 } })
  })
})
