import { readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

const MIB = 1024 * 1024
const DISK = 128 * MIB

// Other servers of tests promise their disk twenty times, because they run side by side on small machines.
describe('a server that promises its disk once, as by default', requires('root'), () => {
  let server: TestServer
  let airlock: Airlock
  beforeAll(async () => {
    server = await startServer({ env: { AIRLOCK_OVERSUBSCRIBE_DISK: '1' } })
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  })
  afterAll(async () => {
    await server?.stop('SIGINT')
  })

  it('takes the whole disk of a sandbox from the host at once, and gives it back', async () => {
    const sandbox = await create()
    expect(await allocated(sandbox)).toBeGreaterThanOrEqual(0.9 * DISK)
    await sandbox.terminate()
    expect(await images()).toEqual([])
  })

  it('lets a sandbox fill its disk to the limit, and its neighbour goes on writing', async () => {
    const [greedy, other] = [await create(), await create()]
    const filled = await greedy.run({ shell: 'head -c 1073741824 /dev/zero >all; stat -c %s all' })
    expect(filled.stderr).toContain('No space left on device')
    expect(Number(filled.stdout)).toBeGreaterThan(0.7 * DISK)
    await other.files.write('kept', Buffer.alloc(8 * MIB, 'x'))
    expect((await other.run({ shell: 'sync kept && wc -c <kept' })).stdout.trim()).toBe(String(8 * MIB))
    await Promise.all([greedy.terminate(), other.terminate()])
  })

  it('refuses more disk than its host has', async () => {
    const { blocks, bsize } = await statfs(server.home)
    await expect(create(blocks * bsize * 2)).rejects.toMatchObject({ code: 'capacity_exhausted' })
  })

  async function create(diskBytes = DISK): Promise<Sandbox> {
    return await airlock.sandboxes.create({ limits: { diskBytes } })
  }

  /** Bytes that the host has given to the disk image of a sandbox. */
  async function allocated({ id }: Sandbox): Promise<number> {
    return (await images()).filter(({ path }) => path.includes(id)).reduce((sum, { bytes }) => sum + bytes, 0)
  }

  async function images(): Promise<readonly { readonly path: string; readonly bytes: number }[]> {
    const directory = join(server.home, 'data-plane/sandboxes')
    const paths = (await readdir(directory)).map((id) => join(directory, id, 'disk.img'))
    return await Promise.all(paths.map(async (path) => ({ path, bytes: (await stat(path)).blocks * 512 })))
  }
})
