import { Airlock } from '@airlock/sdk'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runBare } from '../support/bare-sandbox.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { writeWeakenedRuntime } from '../support/weakened-runtime.ts'
import { ATTACKS } from './attacks.ts'

const MEMORY = 128 * 1024 * 1024

let directory: string
let shipped: TestServer
let listener: Server
let env: Record<string, string>

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'al-wall-'))
  await chmod(directory, 0o755)
  await writeFile(join(directory, 'canary'), 'readable', { mode: 0o644 })
  listener = createServer((socket) => socket.end())
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  env = {
    HOST_PORT: String((listener.address() as AddressInfo).port),
    HOST_PID: String(process.pid),
    HOST_MARK: (await readFile('/proc/self/cmdline', 'utf8')).split('\0')[0] ?? '',
    HOST_FILE: join(directory, 'canary'),
  }
  shipped = await startServer()
})

afterAll(async () => {
  await shipped?.stop()
  listener?.close()
  await rm(directory, { recursive: true, force: true })
})

describe('the wall', () => {
  it.each(ATTACKS)(
    '$id refuses: $attack; without the line that stops it, it gets through',
    async ({ program, without }) => {
      const blocked = await attempt(program)
      expect(blocked).toContain('refused')
      expect(blocked).not.toContain('REACHED')
      const runtime = await writeWeakenedRuntime(directory, without)
      const argv = ['python3', '-c', program]
      expect(await runBare(directory, { runtime, memoryBytes: MEMORY, argv, env })).toContain('REACHED')
    },
  )
})

describe('a runtime that does not isolate as it was told', () => {
  it.each([
    ['no-seccomp', 'no system call filter'],
    ['no-network-namespace', 'no net namespace'],
    ['no-pid-namespace', 'no pid namespace'],
  ] as const)('%s: fails closed, says what is missing, and leaves nothing', async (weakening, missing) => {
    const server = await startServer({ env: { AIRLOCK_RUNTIME: await writeWeakenedRuntime(directory, weakening) } })
    try {
      const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
      const refused = expect.objectContaining({
        code: 'isolation_unavailable',
        message: expect.stringContaining(missing),
      })
      await expect(airlock.sandboxes.create({})).rejects.toEqual(refused)
    } finally {
      await server.stop()
    }
  })
})

async function attempt(program: string): Promise<string> {
  const airlock = new Airlock({ url: shipped.url, apiKey: shipped.developerKey })
  await using sandbox = await airlock.sandboxes.create({ env, limits: { memoryBytes: MEMORY } })
  const result = await sandbox.run(['python3', '-c', program], { timeoutMs: 60_000 })
  return result.stdout + result.stderr
}
