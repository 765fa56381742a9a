import { describe, expect, it } from 'vitest'
import { failsFirst, testFile, TinyProject } from './tiny-project.ts'

const PASSES = testFile('expect(1).toBe(1)')
const FAILS = testFile('expect(1).toBe(2)')
const FAILS_FIRST = testFile(failsFirst('expect(1).toBe(2)'))

const ASSERTION = 'AssertionError: expected 1 to be 2 // Object.is equality'

describe('a run of tests', () => {
  it('holds when a failed file passes alone, and names it', async () => {
    using project = new TinyProject({ passes: PASSES, flickers: FAILS_FIRST })
    expect(await project.run()).toMatchObject({
      exitCode: 0,
      summary: [`unstable: unit/flickers.test.js > works: ${ASSERTION}`, '2 passed, 0 failed, 0 skipped'],
    })
  })

  it('fails when a file fails twice', async () => {
    using project = new TinyProject({ passes: PASSES, fails: FAILS, flickers: FAILS_FIRST })
    expect(await project.run()).toMatchObject({
      exitCode: 1,
      summary: [
        `unstable: unit/flickers.test.js > works: ${ASSERTION}`,
        `broken: unit/fails.test.js > works: ${ASSERTION}`,
        '2 passed, 1 failed, 0 skipped',
      ],
    })
  })

  it('fails when more than five files are unstable', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    using project = new TinyProject(Object.fromEntries(names.map((name) => [name, FAILS_FIRST])))
    const { exitCode, summary } = await project.run()
    expect(exitCode).toBe(1)
    expect(summary.slice(0, -2).toSorted()).toEqual(
      names.map((name) => `unstable: unit/${name}.test.js > works: ${ASSERTION}`),
    )
    expect(summary.slice(-2)).toEqual(['broken: 6 unstable files, more than 5', '6 passed, 1 failed, 0 skipped'])
  })

  it('fails at once when an attack got through, although it is held the second time', async () => {
    const breach = testFile(failsFirst(`throw Object.assign(new Error('read the flag'), { name: 'Breach' })`))
    using project = new TinyProject({ passes: PASSES, breach })
    expect(await project.run()).toMatchObject({
      exitCode: 1,
      summary: [
        'broken: unit/breach.test.js > works: an attack got through: Breach: read the flag',
        '1 passed, 1 failed, 0 skipped',
      ],
    })
  })

  it('fails at once after an error outside of tests', async () => {
    const stray = testFile(failsFirst(`void Promise.reject(new Error('stray'))`))
    using project = new TinyProject({ passes: PASSES, stray })
    const { exitCode, summary } = await project.run()
    expect([exitCode, summary.length, summary[0]]).toEqual([1, 2, 'broken: outside of tests: Error: stray'])
  })

  it('fails when its global set-up fails', async () => {
    using project = new TinyProject({ passes: PASSES }, `globalSetup: ['./set-up.js']`)
    project.write('set-up.js', `export function setup() { throw new Error('no set-up') }`)
    const { exitCode, summary, output } = await project.run()
    expect([exitCode, summary.at(-1)]).toEqual([1, '0 passed, 1 failed, 0 skipped'])
    expect(output).toContain('no set-up')
  })

  it('draws once, and looks again with that seed', async () => {
    using project = new TinyProject({ seen: testFile('throw new Error(process.env.TEST_SEED)') })
    const { output } = await project.run({ TEST_SEED: 'random' })
    const seeds = [...output.matchAll(/with TEST_SEED=(?<seed>\d+)/g)].map(({ groups }) => groups?.['seed'])
    expect([seeds.length, new Set(seeds).size]).toEqual([2, 1])
  })
})
