import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { bar } from './text/bar.ts'
import { CliProcess, type Ended } from './testing/cli-process.ts'

let api: TestApi
let home: string
beforeAll(async () => {
  api = await startTestApi()
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-events-'))
  await writeFile(join(home, 'developer.key'), `${KEYS.developer}\n`)
  await writeFile(join(home, 'admin.key'), `${KEYS.admin}\n`)
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

function start(argv: string): CliProcess {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_HOME: home, AIRLOCK_URL: api.url, TZ: 'UTC' }
  const running = new CliProcess(argv.split(' '), { env })
  running.child.stdin.end()
  return running
}

async function airlock(argv: string): Promise<Ended> {
  return start(argv).ended
}

const LINE = '03:04:05.000  denied     command.run        default  key:abc  policy_denied: A policy denies it.\n'

describe('events', () => {
  it('are one line each: when, how, what, of whom, by whom, and why not', async () => {
    expect(await airlock('events --limit 5')).toEqual({ code: 0, stdout: LINE, stderr: '' })
    expect(JSON.parse((await airlock('events --json')).stdout)).toMatchObject({ seq: 7, point: 'command.run' })
    expect((await airlock('events --point nothing.*')).code).toBe(1)
  })

  it('are followed until Ctrl-C, which is no failure', async () => {
    const running = start('events -f')
    await waitFor(() => (running.stdout.length > 0 ? true : undefined), { signal: deadline(100_000), everyMs: 20 })
    running.child.kill('SIGINT')
    expect(await running.ended).toEqual({ code: 0, stdout: LINE, stderr: '' })
  })
})

describe('what happened', () => {
  it('is summed up for an agent, with a bar for each day', async () => {
    const { stdout } = await airlock('agent summary default --days 2')
    expect(stdout.split('\n')).toEqual([
      'default, 2026-01-01 to 2026-01-02: sandboxes 1, operations ended 2, failed 50.0 %, denied 0.0 %',
      '',
      'OPERATION    DONE  FAILED  DENIED  UNKNOWN  P50 MS  P95 MS  CPU MS  MEMORY',
      'command.run  1     1       0       0        10.0    20.0    5.0     1 KiB',
      '',
      'DAY         RECORDS                            FAILED  DENIED  SANDBOXES',
      '2026-01-01  0                                  0       0       0',
      `2026-01-02  4        ${'█'.repeat(24)}  1       0       1`,
      '',
    ])
  })

  it('is counted for the evidence, with its verification and what is kept', async () => {
    const { stdout } = await airlock('audit stats')
    expect(stdout).toContain('verified  good, up to 4, at 2026-01-02T03:04:05.000Z\n')
    expect(stdout).toContain('kept      30 days, 1 GiB on this node\n')
    expect(JSON.parse((await airlock('audit stats --json')).stdout)).toMatchObject({ records: 4, segments: 1 })
  })

  it.each([
    [0, ''],
    [0.0001, '▏'],
    [0.5, '██'],
    [0.53, '██▏'],
    [1, '████'],
    [7, '████'],
  ])('has bars that are as long as their share: %s', (share, expected) => {
    expect(bar(share, 4)).toBe(expected)
  })
})
