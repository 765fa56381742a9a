import { Airlock, type Sandbox } from '@airlock/sdk'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

const MIB = 1024 * 1024
const LIMITS = { memoryBytes: 256 * MIB, diskBytes: 96 * MIB, inodes: 2048 } as const

/**
 * Finds every directory that it can write to by walking all that is mounted and not read-only, one for each file system, and fills it: first with
 * empty files, then with bytes. Prints what stopped it. It gives up at bounds that are far beyond every limit.
 */
const FILL = `
import errno, json, os, stat
FILES, BYTES = 5_000, 1 << 29
def writable(top):
    try: device = os.lstat(top).st_dev
    except PermissionError: return
    for at, dirs, _ in os.walk(top):
        dirs[:] = [d for d in dirs if os.lstat(os.path.join(at, d)).st_dev == device]
        if os.access(at, os.W_OK | os.X_OK):
            yield at
def fill(at):
    made, why = [], None
    try:
        while len(made) < FILES:
            path = os.path.join(at, 'fill-%d' % len(made))
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            made.append(path)
    except OSError as error:
        why = errno.errorcode[error.errno]
    files = len(made)
    for path in made: os.unlink(path)
    size, end = 0, None
    path = os.path.join(at, 'fill')
    try:
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        while size < BYTES: size += os.write(fd, b'x' * (1 << 20))
    except OSError as error:
        end = errno.errorcode[error.errno]
    os.close(fd)
    os.unlink(path)
    return {'files': files, 'filesEnd': why, 'bytes': size, 'bytesEnd': end}
found = {}
for line in open('/proc/self/mountinfo'):
    top, options = line.split(' ')[4:6]
    if options.split(',')[0] == 'ro' or top.startswith(('/proc', '/sys')): continue
    for at in writable(top):
        device = os.stat(at).st_dev
        if device not in found: found[device] = at
print(json.dumps({at: fill(at) for at in sorted(found.values())}))
`

interface Filled {
  readonly files: number
  readonly filesEnd: string | null
  readonly bytes: number
  readonly bytesEnd: string | null
}

let server: BorrowedServer
let airlock: Airlock

beforeAll(async () => {
  server = await borrowServer('off')
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
})
afterAll(async () => server?.giveBack())

async function fill(sandbox: Sandbox): Promise<Readonly<Record<string, Filled>>> {
  const { stdout, ...ran } = await sandbox.run(['python3', '-c', FILL], { timeoutMs: 150_000 })
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  return JSON.parse(stdout) as Readonly<Record<string, Filled>>
}

/** Bytes that the disk of a sandbox takes on the host. */
function diskOnHost({ id }: Sandbox): number {
  return statSync(join(server.home, 'data-plane/sandboxes', id, 'disk.img')).blocks * 512
}

describe('every place that user code can write to', () => {
  it('is full at its limit, of bytes and of files, and the sandbox goes on', async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: LIMITS })
    const places = await fill(sandbox)
    expect(Object.keys(places)).toEqual(['/dev/shm', '/tmp', '/workspace'])
    for (const { filesEnd, bytesEnd } of Object.values(places))
      expect({ filesEnd, bytesEnd }).toEqual({ filesEnd: 'ENOSPC', bytesEnd: 'ENOSPC' })
    expect(places['/workspace']?.files).toBeGreaterThanOrEqual(LIMITS.inodes)
    expect(places['/workspace']?.files).toBeLessThan(LIMITS.inodes + 64)
    expect(places['/tmp']?.files).toBeLessThanOrEqual(LIMITS.inodes)
    expect(Object.values(places).reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(
      LIMITS.diskBytes + LIMITS.memoryBytes,
    )
    expect((await sandbox.run(['echo', 'alive'])).stdout).toBe('alive\n')
    expect(diskOnHost(sandbox)).toBeLessThanOrEqual(LIMITS.diskBytes)
  })

  it('is bounded in the strict tier too', requires('runsc'), async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: LIMITS, tier: 'strict' })
    const places = await fill(sandbox)
    expect(Object.keys(places)).toEqual(['/dev/shm', '/home/user', '/tmp', '/workspace'])
    for (const { bytesEnd } of Object.values(places)) expect(bytesEnd).toBe('ENOSPC')
    // Its kernel does not count files in memory: the memory that they take is what bounds them.
    for (const place of ['/home/user', '/workspace']) expect(places[place]?.filesEnd).toBe('ENOSPC')
    expect((await sandbox.run(['echo', 'alive'])).stdout).toBe('alive\n')
  })
})
