import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { CliProcess, type Ended } from './testing/cli-process.ts'

let api: TestApi
let home: string
beforeAll(async () => {
  api = await startTestApi()
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-job-'))
  await writeFile(join(home, 'sum.py'), 'print(6 * 7)\n')
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

async function airlock(...argv: readonly string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_URL: api.url, AIRLOCK_API_KEY: KEYS.developer }
  const running = new CliProcess(['job', ...argv], { env, cwd: home })
  running.child.stdin.end()
  return running.ended
}

describe('job run', () => {
  it('follows the job, and passes its output and its exit code on', async () => {
    expect(await airlock('run', '--shell', 'echo out; echo err >&2; exit 3')).toEqual({
      code: 3,
      stdout: 'out\n',
      stderr: 'err\n',
    })
    expect(await airlock('run', 'sum.py')).toEqual({ code: 0, stdout: '42\n', stderr: '' })
    const { code, stdout } = await airlock('run', '--json', '--label', 'team=red', '--', 'echo', 'said')
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { state: 'succeeded', stdout: 'said\n', labels: { team: 'red' } },
    ])
  })

  it('sends files along, and refuses arguments for code', async () => {
    expect(await airlock('run', '--file', 'sum.py', '--', 'cat', 'sum.py')).toMatchObject({ stdout: 'print(6 * 7)\n' })
    expect(await airlock('run', 'sum.py', 'argument')).toMatchObject({ code: 2, stdout: '' })
  })

  it('prints the id alone with --detach, by which the other verbs find it', async () => {
    const { code, stdout } = await airlock('run', '--detach', '--shell', 'echo began; exec sleep 600')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^job_\w{26}\n$/)])
    const id = stdout.trim()
    expect((await airlock('ls')).stdout).toContain(id)
    expect((await airlock('inspect', id)).stdout).toMatch(/^state +running$/m)
    expect(await airlock('cancel', id)).toMatchObject({ code: 0, stdout: `${id}\n` })
    expect(await airlock('logs', '-f', id)).toMatchObject({ code: 0, stdout: 'began\n' })
    expect(JSON.parse((await airlock('inspect', id, '--json')).stdout)).toMatchObject({ state: 'canceled' })
    expect((await airlock('inspect', `job_${'0'.repeat(26)}`)).code).toBe(5)
  })
})
