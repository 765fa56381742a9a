import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { Cleanup } from '@airlock/std'
import { describe, expect, inject, it } from 'vitest'
import { countHost, lookWhenIdle } from '../soak/inventory.ts'
import { judgeCounts } from '../soak/judge.ts'
import { renderReport } from '../soak/report.ts'
import { SoakServer } from '../soak/server.ts'
import { soak } from '../soak/soak.ts'
import { sweep } from '../support/leftovers.ts'
import { requires } from '../support/requires.ts'

const prefix = () => join(tmpdir(), `al-${inject('testRun') ?? ''}`)

describe('a server that is used, paused, killed and SIGKILLed at random for a minute', requires('root', 'crun'), () => {
  it('answers nothing that cannot be explained, and leaks nothing', async () => {
    const report = await soak({ minutes: 1, seed: 20_261_116, sandboxes: 6, prefix: prefix() })
    console.log(renderReport(report))
    expect(report.findings).toEqual([])
    expect(report.rows.filter(({ verdict }) => verdict === 'leak')).toEqual([])
    expect(report.evidence).toMatch(/^verifies: \d+ records/)
    expect(report.ok).toBe(true)
    // It did something.
    expect(Object.keys(report.done).length).toBeGreaterThan(10)
  })
})

describe('what looks for leaks', requires('root', 'crun', 'python3'), () => {
  it('sees each of them, planted one by one', async () => {
    const server = new SoakServer(prefix())
    const undo = new Cleanup()
    try {
      const before = await countHost(server.home)
      const planted = await plant(server.home, undo)
      const rows = judgeCounts('stopped', before, await countHost(server.home))
      const leaks = rows.filter(({ verdict }) => verdict === 'leak').map(({ what }) => what.replace('stopped: ', ''))
      expect(leaks.toSorted()).toEqual(planted.toSorted())
    } finally {
      await undo.run()
      await sweep(server.home)
      rmSync(server.home, { recursive: true })
    }
  })

  it('sees a sandbox that was not ended, in processes, groups, mounts, disks, ranges and rows', async () => {
    const server = new SoakServer(prefix())
    try {
      await server.start()
      const before = (await lookWhenIdle(server)).counts
      const sandbox = await server.admin.sandboxes.create()
      await sandbox.start(['sleep', '600'])
      const leaks = judgeCounts('idle', before, (await lookWhenIdle(server)).counts).filter(
        ({ verdict }) => verdict === 'leak',
      )
      const seen = leaks.map(({ what }) => what.replace('idle: ', '').replace(/groups in .*/, 'groups'))
      expect(new Set(seen)).toEqual(
        new Set([
          'processes in sandboxes',
          'mounts',
          'loop devices',
          'groups',
          'uid ranges',
          'directories of sandboxes',
          'unix sockets',
          'files in run',
          'sandboxes that have not ended',
          'commands that run',
          'reservations in budgets',
        ]),
      )
    } finally {
      await server.stop('SIGINT')
      await sweep(server.home)
      rmSync(server.home, { recursive: true, force: true })
    }
  })
})

/** One thing of each kind that a server may leave on the host. Answers the kinds. */
async function plant(home: string, undo: Cleanup): Promise<readonly string[]> {
  const child = spawn('sleep', ['600'], { env: { PATH: '/usr/bin:/bin', AIRLOCK_HOME: home }, stdio: 'ignore' })
  undo.add('process', () => void child.kill('SIGKILL'))

  const image = `${home}/disk`
  writeFileSync(image, Buffer.alloc(1024 * 1024))
  const loop = execFileSync('losetup', ['--find', '--show', image], { encoding: 'utf8' }).trim()
  undo.add('loop', () => void execFileSync('losetup', ['-d', loop]))

  mkdirSync(`${home}/here`)
  mkdirSync(`${home}/there`)
  execFileSync('mount', ['--bind', `${home}/here`, `${home}/there`])
  undo.add('mount', () => void execFileSync('umount', [`${home}/there`]))

  const hierarchy = existsSync('/sys/fs/cgroup/pids') ? '/sys/fs/cgroup/pids' : '/sys/fs/cgroup'
  const hash = createHash('sha256').update(`${home}/data-plane`).digest('hex').slice(0, 8)
  const group = `${hierarchy}/airlock-${hash}`
  mkdirSync(`${group}/sbx_planted`, { recursive: true })
  undo.add('group', () => {
    rmdirSync(`${group}/sbx_planted`)
    rmdirSync(group)
  })

  const claim = '/run/airlock-uid-ranges/planted'
  mkdirSync('/run/airlock-uid-ranges', { recursive: true, mode: 0o700 })
  symlinkSync(`${home}/data-plane/sandboxes/sbx_planted`, claim)
  undo.add('claim', () => unlinkSync(claim))

  mkdirSync(`${home}/run/sandboxes/sbx_planted`, { recursive: true })
  const socket = createServer().listen(`${home}/run/left.sock`)
  undo.add('socket', () => void socket.close())
  await new Promise((resolve) => socket.once('listening', resolve))
  return [
    'processes of the server',
    'loop devices',
    'mounts',
    `groups in ${hierarchy}`,
    'uid ranges',
    'directories of sandboxes',
    'unix sockets',
  ]
}
