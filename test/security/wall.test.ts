import { Airlock } from '@airlock/sdk'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer } from '../support/server.ts'
import { writeWeakenedRuntime } from '../support/weakened-runtime.ts'

let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'al-wall-'))
  await chmod(directory, 0o755)
})

afterAll(async () => rm(directory, { recursive: true, force: true }))

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
