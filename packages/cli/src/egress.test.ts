import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { CliProcess, type Ended } from './testing/cli-process.ts'

let api: TestApi
let home: string
beforeAll(async () => {
  api = await startTestApi()
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-egress-'))
  await writeFile(join(home, 'developer.key'), `${KEYS.developer}\n`)
  await writeFile(join(home, 'admin.key'), `${KEYS.admin}\n`)
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

it('a host is allowed, and denied by the same rule', async () => {
  expect(await airlock('egress', 'allow', 'Example.com')).toMatchObject({ code: 0, stdout: 'egress@1\n' })
  expect(await airlock('egress', 'allow', '*.example.org:8443', '--agent', 'coder')).toMatchObject({
    stdout: 'egress@2\n',
  })
  expect(await rules()).toMatchObject([
    { kind: 'network', effect: 'allow', match: { hosts: ['example.com'], ports: [443] } },
    { effect: 'allow', match: { hosts: ['*.example.org'], ports: [8443] }, when: { agents: ['coder'] } },
  ])
  expect(await airlock('egress', 'deny', 'example.com:443')).toMatchObject({ stdout: 'egress@3\n' })
  expect((await rules()).map(({ effect }) => effect)).toEqual(['allow', 'deny'])
})

it('what is not a host is a wrong usage', async () => {
  for (const text of ['https://example.com', 'a@b.example', 'example.com:0', 'example.com:99999', ''])
    expect((await airlock('egress', 'allow', text)).code).toBe(2)
})

it('nothing is listed where nothing was connected', async () => {
  const { code, stdout } = await airlock('egress', 'ls', '--json')
  expect([code, JSON.parse(stdout)]).toEqual([0, []])
})

async function rules(): Promise<{ effect: string }[]> {
  const { stdout } = await airlock('policy', 'get', 'egress')
  return (JSON.parse(stdout) as { rules: { effect: string }[] }).rules
}

async function airlock(...argv: readonly string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_HOME: home, AIRLOCK_URL: api.url }
  const running = new CliProcess([...argv], { env })
  running.child.stdin.end()
  return running.ended
}
