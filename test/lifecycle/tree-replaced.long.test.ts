import { Airlock, type Sandbox } from '@airlock/sdk'
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tarOf } from '../../packages/std/src/tar/testing/tar-writer.ts'
import { copyTree } from '../support/copy-tree.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

let tree: string
let server: TestServer
let airlock: Airlock
let admin: Airlock
let before: Sandbox
let granted: string

beforeAll(async () => {
  tree = copyTree()
  granted = mkdtempSync(join(tmpdir(), 'al-granted-'))
  server = await startServer({ tree })
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  before = await airlock.sandboxes.create({})
  // As an upgrade in place leaves it for a while, and worse: there is nothing at all.
  rmSync(tree, { recursive: true })
})

afterAll(async () => {
  await server?.stop()
  rmSync(server?.home ?? '', { recursive: true, force: true })
  for (const path of [tree, granted]) rmSync(path, { recursive: true, force: true })
})

describe('a server whose installation is gone', () => {
  it('goes on with what ran before', async () => {
    expect((await before.run(['echo', 'still'])).stdout).toBe('still\n')
    await using session = await airlock.sessions.create({ sandbox: before.id, runtime: 'python' })
    expect((await session.run('print(6 * 7)')).stdout).toBe('42\n')
  })

  for (const tier of ['standard', 'strict'] as const)
    it(
      `makes, runs, pauses and ends sandboxes of the ${tier} tier, with disks that it never made before`,
      tier === 'strict' ? requires('runsc') : {},
      async () => {
        await using sandbox = await airlock.sandboxes.create({ tier, limits: { diskBytes: 256 * 1024 * 1024 } })
        expect((await sandbox.run(['echo', 'made'])).stdout).toBe('made\n')
        for (const [runtime, code] of SESSIONS) {
          await using session = await airlock.sessions.create({ sandbox: sandbox.id, runtime })
          expect((await session.run(code)).stdout).toBe('42\n')
        }
        await sandbox.files.write('x', 'text')
        await sandbox.pause()
        await sandbox.resume()
        expect(await sandbox.files.readText('x')).toBe('text')
      },
    )

  it('looks at grants and mounts them', async () => {
    chmodSync(granted, 0o755)
    writeFileSync(join(granted, 'file'), 'granted')
    await admin.grants.add('default', granted, { target: '/grants/it' })
    await using sandbox = await airlock.sandboxes.create({})
    expect((await sandbox.run(['cat', '/grants/it/file'])).stdout).toBe('granted')
  })

  it('unpacks images', async () => {
    const template = await airlock.templates.import('one', tarOf([{ name: 'file', content: 'text' }]))
    expect(template).toMatchObject({ state: 'ready', source: 'imported' })
  })

  it('kills', async () => {
    const sandbox = await airlock.sandboxes.create({})
    await admin.killswitch.on({ scope: 'sandbox', target: sandbox.id, reason: 'a test' })
    expect((await airlock.sandboxes.get(sandbox.id)).data.state).toBe('stopped')
  })
})

describe('the next server', () => {
  it('adopts what runs, and keeps what that was started from', async () => {
    const { home, url } = server
    const old = programs(home)
    await server.stop('SIGTERM')
    server = await startServer({ home, env: { AIRLOCK_PORT: new URL(url).port } })
    expect((await before.run(['echo', 'adopted'])).stdout).toBe('adopted\n')
    expect(programs(home)).toEqual(expect.arrayContaining([...old]))
  })
})

const SESSIONS = [
  ['python', 'print(6 * 7)'],
  ['bash', 'echo $((6 * 7))'],
  ['node', 'console.log(6 * 7)'],
] as const

function programs(home: string): readonly string[] {
  return readdirSync(join(home, 'data-plane', 'programs'))
}
