import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest'
import { FORK_BOMB } from '../support/forks.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

const MIB = 1024 * 1024

/** Whatever one sandbox does to itself, a neighbour and the API go on answering. */
let server: BorrowedServer
let airlock: Airlock
let neighbour: Sandbox
let sandbox: Sandbox

beforeAll(async () => {
  server = await borrowServer('off')
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  neighbour = await airlock.sandboxes.create({})
})

afterAll(async () => server?.giveBack())

beforeEach(async () => {
  sandbox = await airlock.sandboxes.create({
    limits: { memoryBytes: 128 * MIB, diskBytes: 64 * MIB, pids: 64, cpus: 0.5 },
  })
})

afterEach(async () => sandbox?.terminate())

/** Both must answer while the bomb is going off: this is the containment, so it has a bound but no speed. */
async function expectOthersAnswer(): Promise<void> {
  const signal = AbortSignal.timeout(30_000)
  const [ran, listed] = await Promise.all([
    neighbour.run(['echo', 'alive'], { signal }),
    airlock.sandboxes.list({ signal }),
  ])
  expect(ran.stdout).toBe('alive\n')
  expect(listed.items.length).toBeGreaterThanOrEqual(2)
}

describe('is contained', () => {
  it('a fork bomb', async () => {
    const bomb = await sandbox.start(FORK_BOMB, { timeoutMs: 4_000 })
    await expectOthersAnswer()
    const ended = await bomb.wait()
    expect(ended).toMatchObject({ state: 'exited', timedOut: true })
    expect((await sandbox.run(['echo', 'again'])).stdout).toBe('again\n')
  })

  it('a memory bomb, and the guest survives it', async () => {
    const bomb = await sandbox.start(['python3', '-c', 'b = []\nwhile True: b.append(bytearray(10_000_000))'], {
      timeoutMs: 30_000,
    })
    await expectOthersAnswer()
    expect(await bomb.wait()).toMatchObject({ state: 'exited', signal: 'SIGKILL', timedOut: false })
    expect((await sandbox.run(['echo', 'again'])).stdout).toBe('again\n')
  })

  it('a memory bomb in tmpfs and shared memory', async () => {
    const filled = await sandbox.run(
      { shell: 'head -c 500M /dev/zero > /tmp/x; head -c 500M /dev/zero > /dev/shm/x; echo done' },
      { timeoutMs: 30_000 },
    )
    await expectOthersAnswer()
    expect(filled.stderr).toContain('No space left')
    expect((await sandbox.run(['echo', 'again'])).stdout).toBe('again\n')
  })

  it('a disk filler, by bytes and by files', async () => {
    const filled = await sandbox.run({ shell: 'head -c 300M /dev/zero > /workspace/x; echo $?' }, { timeoutMs: 60_000 })
    expect(filled.stdout.trim()).toBe('1')
    expect(filled.stderr).toContain('No space left')
    await expectOthersAnswer()
    const files = await sandbox.run(
      [
        'python3',
        '-c',
        'import itertools\ntry:\n  for i in itertools.count(): open("/home/user/%d" % i, "w").close()\nexcept OSError as e: print(e.errno)',
      ],
      { timeoutMs: 120_000 },
    )
    expect(files.stdout.trim()).toBe('28')
  })

  it('a flood of output, cut off with a marker while the program goes on', async () => {
    const flood = await sandbox.run(
      { shell: 'head -c 50M /dev/zero | tr "\\0" x; echo end >&2' },
      { timeoutMs: 60_000, maxOutputBytes: MIB },
    )
    await expectOthersAnswer()
    expect({ exitCode: flood.exitCode, truncated: flood.truncated, length: flood.stdout.length }).toEqual({
      exitCode: 0,
      truncated: true,
      length: MIB,
    })
  })

  it('a process that ignores SIGTERM, with children that left its session', async () => {
    const program = `
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
print('deaf', flush=True)
time.sleep(600)
`
    const stubborn = await sandbox.start(['python3', '-c', program], { timeoutMs: 2_000 })
    for await (const event of stubborn) if (event.event === 'output') break
    await stubborn.signal('SIGTERM')
    expect(await stubborn.wait()).toMatchObject({ timedOut: true, signal: 'SIGKILL' })
    const left = await sandbox.run({ shell: 'grep -l "time[.]sleep" /proc/[0-9]*/cmdline | wc -l' })
    expect(left.stdout.trim()).toBe('0')
  })

  it('zombies: orphans are reaped', async () => {
    await sandbox.run({ shell: 'for i in $(seq 30); do (sleep 0.01 &) ; done' })
    const zombies = async () =>
      (await sandbox.run({ shell: 'grep -h ^State: /proc/[0-9]*/status | grep -c Z || true' })).stdout.trim()
    await expect.poll(zombies, { timeout: 100_000 }).toBe('0')
  })
})
