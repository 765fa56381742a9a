import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../defaults.ts'
import { changeLimitsBody, createSandboxBody, inodesFor, limits } from './sandbox.ts'

const OLD = { memoryBytes: 67_108_864, cpus: 1, pids: 16, diskBytes: 16_777_216 }

describe('limits', () => {
  it('of sandboxes from before there were so many are read with defaults', () => {
    expect(limits.parse(OLD)).toEqual({
      ...OLD,
      inodes: DEFAULTS.inodes.default,
      openFiles: DEFAULTS.openFiles.default,
      cpuSeconds: null,
    })
  })

  it('that nobody named are not filled in where a caller names some', () => {
    expect(createSandboxBody.parse({ limits: { pids: 20 } }).limits).toEqual({ pids: 20 })
    expect(changeLimitsBody.parse({ cpuSeconds: null })).toEqual({ cpuSeconds: null })
  })

  it.each([{}, { swapBytes: 1 }, { openFiles: 1 }, { cpuSeconds: 0.5 }, { inodes: null }])(
    'cannot be changed by %j',
    (body) => {
      expect(changeLimitsBody.safeParse(body).success).toBe(false)
    },
  )

  it('have inodes by the size of the disk, between the least and the most', () => {
    expect([16_777_216, 1_073_741_824, 2 ** 40].map(inodesFor)).toEqual([1024, 65_536, DEFAULTS.inodes.max])
  })
})
