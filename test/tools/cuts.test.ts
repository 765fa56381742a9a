import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { RunningCommand, Sandbox } from '@airlock/sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { allow, callRecords, callTool, CANARY, ISSUE, issueTool, startToolServer, type ToolServer } from './support.ts'

const NEEDS = requires('root')
const PATIENCE = { timeout: 30_000 }

let world: ToolServer
let box: Sandbox

beforeAll(async () => {
  world = await startToolServer()
  await world.admin.tools.put('issue', issueTool(world.origin))
}, 240_000)
afterAll(async () => world?.stop())

beforeEach(async () => {
  await allow(world.admin, 'issue')
  box = await world.developer.sandboxes.create({ doors: ['broker'] })
})
afterEach(async () => box?.terminate())

const isCut = async () => (await world.service.seen()).connections.at(-1)?.isOpen === false
const ends = async () => (await callRecords(world.admin, box.id)).filter(({ status }) => status !== 'requested')

/** A call that the service has and does not answer. */
async function pendingCall(): Promise<RunningCommand> {
  const before = (await world.service.seen()).requests.length
  await world.service.next({ wait: 'never' })
  const call = await box.start(['airlock-tool', 'issue', JSON.stringify(ISSUE)])
  await expect.poll(async () => (await world.service.seen()).requests.length, PATIENCE).toBe(before + 1)
  expect(await isCut()).toBe(false)
  return call
}

describe('a call of a tool that is under way', NEEDS, () => {
  it('is cut when the rule that allowed it is taken away', async () => {
    const call = await pendingCall()
    await allow(world.admin)
    await expect.poll(isCut, PATIENCE).toBe(true)
    expect((await call.wait()).stderr).toContain('This call is not allowed. (policy_denied)')
    await expect.poll(ends, PATIENCE).toMatchObject([{ status: 'denied', error: { code: 'policy_denied' } }])
  })

  it('is cut when its sandbox is paused', async () => {
    const call = await pendingCall()
    await box.pause()
    await expect.poll(isCut, PATIENCE).toBe(true)
    await box.resume()
    expect((await call.wait()).stderr).toContain('(sandbox_paused)')
  })

  it('is cut when its sandbox is terminated, and has one end in the evidence', async () => {
    await pendingCall()
    await box.terminate()
    await expect.poll(isCut, PATIENCE).toBe(true)
    await expect.poll(async () => (await ends()).length, PATIENCE).toBe(1)
  })

  it.each(['doors', 'keys', 'control-plane'] as const)(
    'is cut when the process %s is killed, has one end in the evidence, and the next call works',
    async (name) => {
      await pendingCall()
      const pid = pidOf(world.server.home, name)
      process.kill(pid ?? NaN, 'SIGKILL')
      await expect.poll(isCut, PATIENCE).toBe(true)
      await expect.poll(async () => (await callTool(box, 'issue')).exitCode, { timeout: 60_000, interval: 500 }).toBe(0)
      await expect
        .poll(async () => {
          const records = await callRecords(world.admin, box.id)
          const first = records.find(({ status }) => status === 'requested')?.payload['call']
          return records.filter(({ payload }) => payload['call'] === first).map(({ status }) => status).length
        }, PATIENCE)
        .toBe(2)
      const counts = (await callRecords(world.admin, box.id)).map(({ payload }) => payload['count'])
      expect(counts.at(-1)).toBeGreaterThan(1)
    },
    120_000,
  )
})

describe('a secret', NEEDS, () => {
  it('that gets a new value is sent with it from the next call on, and one that is removed with none', async () => {
    const other = CANARY.replace('7f3a', 'ffff')
    const secrets = world.admin.secrets
    expect((await secrets.put('service', { value: other, origin: world.origin })).version).toBeGreaterThan(1)
    expect((await callTool(box, 'issue')).exitCode).toBe(0)
    expect((await world.service.seen()).requests.at(-1)?.head).toContain(`authorization: Bearer ${other}\r\n`)
    await secrets.put('service', { value: CANARY, origin: 'http://127.0.0.2:1' })
    expect((await callTool(box, 'issue')).err).toContain('(secret_unavailable)')
    await secrets.remove('service')
    const before = (await world.service.seen()).requests.length
    expect((await callTool(box, 'issue')).err).toContain('(secret_unavailable)')
    expect((await world.service.seen()).requests.length).toBe(before)
    await secrets.put('service', { value: CANARY, origin: world.origin })
  })

  it('is nowhere inside, in no file of the server, and in no answer or record', async () => {
    expect((await callTool(box, 'issue')).exitCode).toBe(0)
    const shell = `env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; cat /run/airlock/token
      grep -rls ${CANARY.slice(0, 20)} /workspace /home /run /tmp /etc 2>/dev/null`
    const { stdout } = await box.run({ shell })
    const shown = [await world.admin.secrets.list(), await world.admin.audit.events({ limit: 200 })]
    for (const said of [stdout, JSON.stringify(shown), await world.admin.audit.events({}).then(JSON.stringify)])
      expect(said).not.toContain(CANARY)
    expect(JSON.stringify(shown)).toContain('"secret.put"')
    const forms = [CANARY, Buffer.from(CANARY).toString('base64').slice(0, 40), Buffer.from(CANARY).toString('hex')]
    const { home } = world.server
    expect(existsSync(`${home}/keys/seal.key`)).toBe(true)
    const found = forms.map((form) => grep(form, home))
    expect(found).toEqual(['', '', ''])
    // The positive control: the ciphertext is in the store.
    expect(grep('als_', `${home}/control-plane`)).not.toBe('')
  })
})

/** Files below a directory that hold a text. */
function grep(text: string, dir: string): string {
  try {
    return execFileSync('grep', ['-rlaFs', '--devices=skip', '--exclude=disk.img', text, dir], { encoding: 'utf8' })
  } catch (error) {
    // It exits with 1 where nothing is found, and with 2 where a file went away meanwhile.
    return error instanceof Error && 'stdout' in error ? String(error.stdout) : ''
  }
}
