import { Airlock } from '@airlock/sdk'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { finalLeftovers, startServer, type TestServer } from '../support/server.ts'
import { writeWeakenedRuntime, type Weakening } from '../support/weakened-runtime.ts'

let directory: string
let server: TestServer
let airlock: Airlock

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'al-wall-'))
  await chmod(directory, 0o755)
  server = await startServer({ env: { AIRLOCK_RUNTIME: await writeWeakenedRuntime(directory, 'none') } })
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
})

afterAll(async () => {
  await server?.stop()
  await rm(directory, { recursive: true, force: true })
})

const WEAKER: readonly (readonly [Weakening, string])[] = [
  ['no-seccomp', 'no system call filter'],
  ['allow-all-seccomp', 'the call keyctl works'],
  ['no-network-namespace', 'no net namespace'],
  ['no-pid-namespace', 'no pid namespace'],
  ['no-ipc-namespace', 'no ipc namespace'],
  ['no-uts-namespace', 'no uts namespace'],
  ['new-privileges', 'privileges can be gained'],
  ['more-capabilities', 'capability CAP_13'],
  ['writable-root', 'a writable root'],
  ['no-masked-paths', '/proc/keys is not masked'],
  ['no-read-only-paths', '/proc/sys is writable'],
  ['set-uid-mounts', '/tmp without nosuid'],
  ['shared-host-directory', 'a mount at /tmp/shared that nobody asked for'],
]

describe('a runtime that does not isolate as it was told', () => {
  it('makes sandboxes while it does: each shows what was read back and tried', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    expect(sandbox.data.isolation).toMatchObject({
      seccomp: 'allowlist',
      root: 'read-only',
      unmasked: [],
      mountFaults: [],
      probe: { tried: expect.any(Number), passed: [] },
    })
    expect(sandbox.data.isolation?.probe?.tried).toBeGreaterThan(60)
  })

  it.each(WEAKER)('%s: fails closed, says what is missing, and leaves nothing', async (weakening, missing) => {
    await writeWeakenedRuntime(directory, weakening)
    const refused = expect.objectContaining({
      code: 'isolation_unavailable',
      message: expect.stringContaining(missing),
    })
    await expect(airlock.sandboxes.create({})).rejects.toEqual(refused)
    expect(await finalLeftovers(server.home)).toEqual([])
  })

  it('makes sandboxes again once it is mended', async () => {
    await writeWeakenedRuntime(directory, 'none')
    await using sandbox = await airlock.sandboxes.create({})
    expect(sandbox.data.state).toBe('active')
  })
})
