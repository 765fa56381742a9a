import { describe, expect, it } from 'vitest'
import type { FileResult, Results } from '../../test/support/results.ts'
import { mustRun } from './skips.ts'
import { judge, worthASecondLook } from './verdict.ts'

const PASSED: FileResult = { project: 'unit', file: 'passed.test.ts', seconds: 1, passed: 3, skipped: [], failures: [] }
const FAILED: FileResult = {
  ...PASSED,
  file: 'failed.test.ts',
  failures: [{ test: 'works', error: 'Error: no', isBreach: false }],
}

describe('a run', () => {
  it('holds when every test passed', () => {
    expect(judge(ran({ files: [PASSED] }), new Map(), mustRun)).toEqual({
      holds: true,
      lines: [],
      passed: 3,
      failed: 0,
      skipped: 0,
    })
  })

  it('counts the tests of an unstable file as passed', () => {
    const again = new Map([[FAILED, ran({ files: [{ ...FAILED, passed: 4, failures: [] }] })]])
    expect(judge(ran({ files: [PASSED, FAILED] }), again, mustRun)).toEqual({
      holds: true,
      lines: ['unstable: failed.test.ts > works: Error: no'],
      passed: 7,
      failed: 0,
      skipped: 0,
    })
  })

  it('fails when a failed file had no second look', () => {
    expect(judge(ran({ files: [FAILED] }, 1), new Map(), mustRun)).toMatchObject({
      holds: false,
      lines: ['broken: failed.test.ts > works: Error: no'],
    })
  })

  it('fails when nothing of a file ran the second time', () => {
    const again = new Map([[FAILED, ran({ files: [{ ...FAILED, passed: 0, failures: [] }] })]])
    expect(judge(ran({ files: [FAILED] }, 1), again, mustRun).holds).toBe(false)
  })

  it('names what failed only the second time', () => {
    const other = { test: 'lasts', error: 'Error: late', isBreach: false }
    const again = new Map([[FAILED, ran({ files: [{ ...FAILED, failures: [other] }] }, 1)]])
    expect(judge(ran({ files: [FAILED] }, 1), again, mustRun).lines).toEqual([
      'broken: failed.test.ts > works: Error: no',
      'broken: failed.test.ts > lasts: Error: late',
    ])
  })

  it.each([
    [
      'it ended without results',
      { exitCode: null, results: undefined },
      'Vitest ended with a signal and without results',
    ],
    ['no file ran', ran({ files: [] }), 'no test file ran'],
    ['a tear-down failed', ran({ files: [PASSED] }, 1), 'every test passed, but Vitest ended with 1'],
    [
      'something was left behind',
      ran({ files: [PASSED], unhandled: ['left behind: x'] }),
      'outside of tests: left behind: x',
    ],
  ])('fails when %s', (_, first, line) => {
    expect(judge(first, new Map(), mustRun)).toMatchObject({ holds: false, lines: [`broken: ${line}`] })
  })

  it('fails when the second look itself breaks', () => {
    const second = ran({ files: [{ ...FAILED, failures: [] }], unhandled: ['Error: stray'] }, 1)
    expect(judge(ran({ files: [FAILED] }, 1), new Map([[FAILED, second]]), mustRun)).toMatchObject({
      holds: false,
      lines: ['unstable: failed.test.ts > works: Error: no', 'broken: outside of tests: Error: stray (second look)'],
    })
  })

  it('has a second look at twelve files, and at none of thirteen', () => {
    const files = Array.from({ length: 13 }, (_, at) => ({ ...FAILED, file: `${at}.test.ts` }))
    expect(worthASecondLook(ran({ files: files.slice(1) }))).toHaveLength(12)
    expect(worthASecondLook(ran({ files }))).toEqual([])
  })
})

describe('a skipped test', () => {
  const skipped = (reason: string) => ran({ files: [{ ...PASSED, skipped: [{ name: 'a > b', reason }] }] })

  it('fails the run when the gate installs what it needs, or without a reason', () => {
    for (const reason of ['needs crun', 'no reason given', ''])
      expect(judge(skipped(reason), new Map(), mustRun)).toMatchObject({
        holds: false,
        lines: [`broken: skipped, although this machine must run it: a > b (${reason})`],
        skipped: 0,
      })
  })

  it('is allowed when it needs what the gate does not install', () => {
    expect(judge(skipped('needs root, go, go-proxy'), new Map(), mustRun)).toMatchObject({ holds: true, skipped: 1 })
  })
})

function ran(results: Partial<Results>, exitCode = 0) {
  return { exitCode, results: { files: [], unhandled: [], ...results } }
}
