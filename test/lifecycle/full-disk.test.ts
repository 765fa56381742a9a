import { Airlock } from '@airlock/sdk'
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)

it('kills on a full disk, refuses what it cannot record, and catches up when there is space again', async () => {
  const home = await mkdtemp(join(tmpdir(), 'al-full-'))
  await run('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=0711', 'airlock-full', home])
  await chmod(home, 0o711)
  const server = await startServer({ home, env: { AIRLOCK_DISK_RESERVE_MB: '0' } })
  try {
    const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
    const sandbox = await airlock.sandboxes.create({ limits: { diskBytes: 16 * 1024 * 1024 } })
    const space = await statfs(home)
    await writeFile(join(home, 'filler'), Buffer.alloc(space.bavail * space.bsize)).catch(() => undefined)
    await expect(sandbox.run(['true'])).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:evidence|store)_unavailable$/),
    })
    await sandbox.terminate().catch(() => undefined)
    await expect.poll(() => server.processesOf(sandbox.id), { timeout: 100_000 }).toEqual([])

    await rm(join(home, 'filler'))
    await expect
      .poll(async () => (await airlock.sandboxes.get(sandbox.id)).data.state, { timeout: 100_000 })
      .toBe('stopped')
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    await expect
      .poll(
        async () =>
          (await admin.audit.events({ sandbox: sandbox.id, point: 'sandbox.terminate' })).items.map((one) => [
            one.status,
            one.late,
          ]),
        { timeout: 100_000 },
      )
      .toContainEqual(['done', true])
  } finally {
    await server.stop('SIGINT')
    await run('umount', [home])
    await rm(home, { recursive: true, force: true })
  }
})
