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
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-budget-'))
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

it('shows a budget, sets parts of it, and goes back to the default', async () => {
  const { stdout } = await airlock('budget set default --cpus 7.5 --memory 4g --disk 20g --compute-seconds 60')
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['LIMIT', 'TAKEN', 'OF', 'FROM'],
    ['sandboxes', '0', '5', 'default'],
    ['memory', '0 B', '4 GiB', 'set'],
    ['disk', '0 B', '20 GiB', 'set'],
    ['cpus', '0', '7.5', 'set'],
    ['compute seconds today', '0.0', '60', 'set'],
    ['dollars today', '0.00', '10.00', 'default'],
    ['model calls today', '0', '1000', 'default'],
    ['model tokens today', '0', '1000000', 'default'],
    [''],
  ])
  await airlock('budget set default --memory default --disk default --compute-seconds default')
  const shown = JSON.parse((await airlock('budget get default --json')).stdout)
  expect([shown.limits.cpus, shown.limits.memoryBytes, shown.set]).toEqual([7.5, 2_147_483_648, ['cpus']])
  expect(JSON.parse((await airlock('budget get default --tenant --json')).stdout)).toMatchObject({ agent: null })
})

it('exits with a code that says what went wrong', async () => {
  const developer = { AIRLOCK_API_KEY: KEYS.developer }
  const lines = ['budget get nobody', 'budget set default --cpus many', 'usage --from yesterday']
  expect(await Promise.all(lines.map(async (line) => (await airlock(line)).code))).toEqual([5, 2, 1])
  expect((await airlock('budget set default --cpus 64', developer)).code).toBe(4)
})

it('prints the ledger as a table, JSON or CSV', async () => {
  expect((await airlock('usage')).stdout).toBe(
    'DAY  AGENT  SANDBOXES  LIVED S  COMPUTE S  CALLS  IN  OUT  CACHED  DOLLARS\n',
  )
  expect((await airlock('usage --by model --since 7d')).stdout).toBe('MODEL  CALLS  IN  OUT  CACHED  DOLLARS\n')
  expect(JSON.parse((await airlock('usage --json')).stdout)).toEqual({ items: [], truncated: false })
  expect((await airlock('usage --csv')).stdout).toBe(
    'day,tenant,agent,sandbox,model,sandboxes,wallSeconds,cpuSeconds,computeSeconds,calls,estimatedCalls,' +
      'inputTokens,outputTokens,cacheReadTokens,cacheWriteTokens,microDollars,dollars\n',
  )
})
