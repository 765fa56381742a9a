import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { testFile, TinyProject } from './tiny-project.ts'

const SET_UP = fileURLToPath(new URL('../support/run-directory.ts', import.meta.url))
const CONFIG = `pool: 'forks', globalSetup: ['${SET_UP}']`
const TEST_GROUP = fileURLToPath(new URL('../support/test-group.ts', import.meta.url))
const GROUPS = '/sys/fs/cgroup/pids'
const root = existsSync(GROUPS) ? GROUPS : '/sys/fs/cgroup'

/** Puts one thing of each kind on the host, names them in `left.json`, and kills a process. */
const LEAVES = (kill: string) => `
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { it } from 'vitest'
import { testGroupName } from '${TEST_GROUP}'
const parentOf = (pid) => Number(readFileSync('/proc/' + pid + '/stat', 'utf8').split(') ')[1].split(' ')[1])
it('leaves things', () => {
  const directory = process.env.TMPDIR
  const group = '${root}/' + testGroupName()
  mkdirSync(group)
  const marked = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' }).pid
  const grouped = spawn('sleep', ['601'], { detached: true, stdio: 'ignore', env: {} }).pid
  writeFileSync(group + '/cgroup.procs', String(grouped))
  const mount = directory + '/mount here'
  mkdirSync(mount)
  execFileSync('mount', ['-t', 'tmpfs', 'none', mount])
  writeFileSync(directory + '/image', '')
  truncateSync(directory + '/image', 1 << 20)
  const loop = execFileSync('losetup', ['--find', '--show', directory + '/image'], { encoding: 'utf8' }).trim()
  mkdirSync('/run/airlock-uid-ranges', { recursive: true })
  const claim = '/run/airlock-uid-ranges/test-' + process.pid
  symlinkSync(directory + '/sandbox', claim)
  const vitest = process.ppid
  const left = { directory, group, pids: [marked, grouped, process.pid, vitest], mount, loop, claim }
  writeFileSync('left.json', JSON.stringify(left))
  ${kill}
  execFileSync('sleep', ['60'])
}, 100_000)
`

interface Left {
  readonly directory: string
  readonly group: string
  readonly pids: readonly number[]
  readonly mount: string
  readonly loop: string
  readonly claim: string
}

/** What of it is still there. */
function remainsOf({ directory, group, pids, mount, loop, claim }: Left): readonly string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
  const loops = execFileSync('losetup', ['--list', '--noheadings', '--output', 'NAME,BACK-FILE'], { encoding: 'utf8' })
  return [
    ...pids.filter((pid) => /^\d+ \(.*\) [^Z]/s.test(readStat(pid))).map((pid) => `process ${pid}`),
    ...[directory, group].filter((path) => existsSync(path)),
    ...(mounts.includes(mount.replaceAll(' ', '\\040')) ? [mount] : []),
    ...(loops.includes(`${directory}/`) ? [loop] : []),
    ...(readLinks().includes(claim) ? [claim] : []),
  ]
}

function readLinks(): readonly string[] {
  return execFileSync('find', ['/run/airlock-uid-ranges', '-type', 'l'], { encoding: 'utf8' }).split('\n')
}

function readStat(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    // It has ended.
    return ''
  }
}

it.each([
  ['Vitest', `process.kill(vitest, 'SIGKILL')`],
  ['the program behind npm test, while Vitest goes on,', `process.kill(parentOf(vitest), 'SIGKILL')`],
])('when %s was killed, the next run ends all that is left', requires('root'), async (_, kill) => {
  using project = new TinyProject({ leaves: LEAVES(kill) }, CONFIG)
  await project.runUntilKilled()
  const left = JSON.parse(readFileSync(join(project.directory, 'left.json'), 'utf8')) as Left
  expect(remainsOf(left)).toContain(left.directory)
  using bystander = new Bystander()
  project.write('unit/leaves.test.js', testFile('expect(1).toBe(1)'))
  const next = await project.run()
  expect(next).toMatchObject({ exitCode: 0, summary: ['1 passed, 0 failed, 0 skipped'] })
  expect(remainsOf(left)).toEqual([])
  for (const kind of ['process', 'control group', 'mount', 'loop device', 'uid range'])
    expect(next.output).toMatch(new RegExp(`ended what an earlier run of tests left: at-\\w{6}: ${kind} `))
  expect(bystander.isThere()).toBe(true)
})

it('a run that goes on is left alone, and leaves nothing itself', requires('root'), async () => {
  const waits = testFile(`writeFileSync('left.json', JSON.stringify({ directory: process.env.TMPDIR }))
    while (!existsSync('go')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)`)
  using first = new TinyProject({ waits }, CONFIG)
  using second = new TinyProject({ passes: testFile('expect(1).toBe(1)') }, CONFIG)
  const going = first.run()
  const told = join(first.directory, 'left.json')
  // The file is there before its text is.
  await expect.poll(() => existsSync(told) && readFileSync(told, 'utf8')).toMatch(/\}$/)
  const { directory } = JSON.parse(readFileSync(told, 'utf8')) as Left
  expect(await second.run()).toMatchObject({ exitCode: 0 })
  expect(existsSync(directory)).toBe(true)
  first.write('go', '')
  expect(await going).toMatchObject({ exitCode: 0, summary: ['1 passed, 0 failed, 0 skipped'] })
  expect(existsSync(directory)).toBe(false)
})

it('what is left of a sandbox at the end fails the run', requires('root'), async () => {
  const leaves = testFile(
    `mkdirSync(process.env.TMPDIR + '/al-home/data-plane/sandboxes/sbx_left', { recursive: true })`,
  )
  using project = new TinyProject({ leaves: leaves.replace('existsSync', 'existsSync, mkdirSync') }, CONFIG)
  expect(await project.run()).toMatchObject({
    exitCode: 1,
    summary: [
      'broken: outside of tests: left behind: directory data-plane/sandboxes/sbx_left',
      '1 passed, 1 failed, 0 skipped',
    ],
  })
})

/** A control group of somebody else whose name is nearly that of a test. */
class Bystander implements Disposable {
  readonly #group = join(root, `airlock-test-at-bystander-${process.pid}`)

  constructor() {
    mkdirSync(this.#group)
  }

  isThere(): boolean {
    return existsSync(this.#group)
  }

  [Symbol.dispose](): void {
    rmdirSync(this.#group)
  }
}
