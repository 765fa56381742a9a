import { createLog } from '@airlock/std'
import { expect, it } from 'vitest'
import type { SandboxStats } from '../isolation/backend.ts'
import { freezeAll } from './freeze-all.ts'

const log = createLog({ process: 'test', level: 'silent', write: () => {} })

it.each([
  ['destroyed while it is frozen', [3, undefined], 3],
  ['counted before and after', [3, 2], 2],
  ['gone before', [undefined, undefined], null],
])('a sandbox that is %s has this many processes in the report', async (_when, counts, processes) => {
  const answers = [...counts]
  const stats = async () => {
    const count = answers.shift()
    return count === undefined ? undefined : statsOf(count)
  }
  const frozen = await freezeAll({ freeze: async () => {}, stats }, ['sbx_1'], log)
  expect(frozen).toEqual([{ id: 'sbx_1', frozenMs: expect.any(Number), processes }])
})

function statsOf(processes: number): SandboxStats {
  return { processes, memoryBytes: 0, memoryPeakBytes: null, cpuMs: null, oomKills: 0 }
}
