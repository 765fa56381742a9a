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
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-policy-'))
  await writeFile(join(home, 'developer.key'), `${KEYS.developer}\n`)
  await writeFile(join(home, 'admin.key'), `${KEYS.admin}\n`)
  await writeFile(join(home, 'house.json'), JSON.stringify(HOUSE))
  await writeFile(join(home, 'broken.json'), '{')
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

const HOUSE = {
  name: 'house',
  rules: [
    {
      kind: 'command',
      id: 'no-sl',
      effect: 'deny',
      risk: 'high',
      reason: 'No trains here.',
      match: { programs: ['sl'] },
      examples: { match: ['sl -a'], notMatch: ['ls'] },
    },
  ],
}

async function airlock(...argv: readonly string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_HOME: home, AIRLOCK_URL: api.url }
  const running = new CliProcess([...argv], { env })
  running.child.stdin.end()
  return running.ended
}

const file = (name: string) => join(home, name)
/** The first cells of each line: the others are times and names. */
const cells = ({ stdout }: Ended, count = 3) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).slice(0, count))

describe('policy', () => {
  it('is checked, put, listed, shown, and taken out of force', async () => {
    expect(await airlock('policy', 'check', file('house.json'))).toMatchObject({
      code: 0,
      stdout: '1 rules and 2 examples hold.\n',
    })
    expect(await airlock('policy', 'put', file('house.json'), '--expect', '0')).toMatchObject({ stdout: 'house@1\n' })
    expect(await airlock('policy', 'put', file('house.json'), '--expect', '7')).toMatchObject({ code: 6 })
    expect(cells(await airlock('policy', 'ls'))).toEqual([
      ['NAME', 'VERSION', 'STATE'],
      ['house', '1', 'in force'],
    ])
    const shown = await airlock('policy', 'get', 'house')
    expect(JSON.parse(shown.stdout)).toMatchObject(HOUSE)
    expect(await airlock('policy', 'backtest', file('house.json'))).toMatchObject({
      stdout: '0 of 0 decisions would change.\n',
    })
    expect(await airlock('policy', 'backtest', file('house.json'), '--since', '1h', '--until', '1s')).toMatchObject({
      stdout: '0 of 0 decisions would change.\n',
    })
    expect(await airlock('policy', 'backtest', file('house.json'), '--since', 'soon')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Use a time like'),
    })
    expect(await airlock('policy', 'rm', 'house')).toMatchObject({ stdout: 'house\n' })
    expect(cells(await airlock('policy', 'ls', 'house'))).toEqual([
      ['NAME', 'VERSION', 'STATE'],
      ['house', '2', 'out of force'],
      ['house', '1', 'in force'],
    ])
  })

  it('that is wrong is said to be, by its rule', async () => {
    await writeFile(
      file('untrue.json'),
      JSON.stringify({ ...HOUSE, rules: [{ ...HOUSE.rules[0], examples: { match: ['ls'] } }] }),
    )
    expect(await airlock('policy', 'check', file('untrue.json'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('house/no-sl'),
    })
    expect(await airlock('policy', 'put', file('broken.json'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not JSON'),
    })
    expect(await airlock('policy', 'get', 'nothing')).toMatchObject({ code: 5 })
  })
})

describe('guardian', () => {
  it('says what it would make of a command, with a code for scripts', async () => {
    expect(await airlock('guardian', 'check', 'ls', '-la')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^decision +allow\n/),
    })
    const denied = await airlock('guardian', 'check', 'rm -rf /')
    expect(denied).toMatchObject({ code: 4, stdout: expect.stringMatching(/^decision +deny\n/) })
    expect(denied.stdout).toMatch(/^RULE +EFFECT +RISK +REASON\nbuiltin\/[a-z-]+ +deny/m)
    expect(await airlock('guardian', 'check', '--json', '--', 'rm', '-rf', '/')).toMatchObject({
      code: 4,
      stdout: expect.stringContaining('"argv":["rm","-rf","/"]'),
    })
  })

  it('shows what decides, and each rule', async () => {
    const status = await airlock('guardian', 'status')
    expect(status.stdout).toMatch(/^default +allow\nrules +\d+ command/)
    expect(status.stdout).toMatch(/^builtin +shipped +\d+ +\d+ +- +-$/m)
    const rules = cells(await airlock('guardian', 'rules'), 6)
    expect(rules[0]).toEqual(['RULE', 'KIND', 'EFFECT', 'RISK', 'STATE', 'REASON'])
    expect(rules.length).toBeGreaterThan(10)
  })
})
