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
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-who-'))
  await writeFile(join(home, 'developer.key'), `${KEYS.developer}\n`)
  await writeFile(join(home, 'admin.key'), `${KEYS.admin}\n`)
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

async function airlock(argv: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const own = { PATH: process.env['PATH'] ?? '', AIRLOCK_HOME: home, AIRLOCK_URL: api.url }
  const running = new CliProcess(argv.split(' '), { env: { ...own, ...env } })
  running.child.stdin.end()
  return running.ended
}

const ok = (stdout: string, stderr = ''): Ended => ({ code: 0, stdout, stderr })

describe('agent', () => {
  it('registers with the developer key, and decides with the admin key', async () => {
    expect(await airlock('agent register coder --version 1.2 --label a=b --meta repo=x')).toEqual(
      ok('coder\n', 'It has no sandboxes until: airlock agent approve coder\n'),
    )
    const { stdout } = await airlock('agent ls --pending')
    expect(stdout.split('\n')[0]).toMatch(/^AGENT +STATE +APPROVED +GENERATION +VERSION +LAST SEEN +LABELS$/)
    expect(stdout.split('\n')[1]).toMatch(/^coder +unknown +no +0 +1\.2 +never +a=b$/)
    expect(await airlock('agent approve coder --generation 0')).toEqual(ok('coder\n'))
    expect(JSON.parse((await airlock('agent inspect coder --json')).stdout)).toMatchObject({
      approved: true,
      owner: 'key:developer',
      metadata: { repo: 'x' },
    })
    expect(await airlock('agent rm coder')).toEqual(ok('coder\n'))
  })

  it('exits with a code that says what went wrong', async () => {
    const codes = async (...lines: string[]) => Promise.all(lines.map(async (line) => (await airlock(line)).code))
    expect(await codes('agent inspect nobody', 'agent suspend', 'agent resume default')).toEqual([5, 2, 6])
    expect((await airlock('keys ls', { AIRLOCK_API_KEY: KEYS.developer })).code).toBe(4)
    expect((await airlock('tenant ls', { AIRLOCK_API_KEY: 'al_wrong' })).code).toBe(4)
    expect((await airlock('agent ls', { AIRLOCK_URL: 'http://127.0.0.1:9' })).code).toBe(3)
  })
})

describe('keys and tenant', () => {
  it('prints a new key alone on stdout, once', async () => {
    expect(await airlock('tenant create acme')).toEqual(ok('acme\n'))
    const made = await airlock('keys create first --tenant acme --role admin --expires 1d --person ann')
    expect(made.stdout).toMatch(/^al_\w{12}_\w{32}\n$/)
    expect(made.stderr).toMatch(/^Key \w{12}: admin of acme, until \S+Z\. It is not shown again\.\n$/)
    const id = made.stdout.split('_')[1] ?? ''
    const listed = await airlock('keys ls --tenant acme')
    expect(listed.stdout.split('\n')[1]).toMatch(
      new RegExp(`^${id} +first +admin +all +ann +good for 23h 59m|${id} +first +admin +all +ann +good for 1d`),
    )
    expect(listed.stdout).not.toContain(made.stdout.split('_')[2]?.trim())
    const rotated = await airlock(`keys rotate ${id} --overlap 1h --json`)
    expect(JSON.parse(rotated.stdout)).toMatchObject({ key: { replaces: id, tenant: 'acme', role: 'admin' } })
    expect(await airlock(`keys revoke ${id}`)).toEqual(ok(`${id}\n`))
    expect((await airlock('tenant ls')).stdout).toMatch(/^TENANT +CREATED\nacme +\S+\ndefault +\S+\n$/)
  })
})
