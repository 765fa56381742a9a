import { Airlock, type Sandbox } from '@airlock/sdk'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../../support/borrow-server.ts'
import { plantHost, type PlantedHost } from './host.ts'

/** What a sandbox leaves, and what it does to files while the host uses them. */
export function describeHygiene(tier: 'standard' | 'strict'): void {
  describe(`a ${tier} sandbox`, tier === 'strict' ? requires('runsc') : {}, () => {
    const place: Partial<Place> = {}
    const at = (): Place => {
      const { server, airlock, host } = place
      if (!server || !airlock || !host) throw new TypeError('the server did not start')
      return { server, airlock, host }
    }
    beforeAll(async () => {
      place.host = await plantHost()
      place.server = await borrowServer()
      place.airlock = new Airlock({ url: place.server.url, apiKey: place.server.developerKey })
    })
    afterAll(async () => {
      await place.server?.giveBack()
      await place.host?.close()
    })

    it('leaves nothing: what it left is seen by itself, not by one beside it, and not by the next', async () =>
      expectNothingLeft(at(), tier))

    it('leads no read, write, listing or delete of the host astray, however files change meanwhile', async () =>
      expectNotLedAstray(at(), tier))

    if (tier === 'standard')
      it('shares no host uid with another', async () => {
        await using one = await at().airlock.sandboxes.create({})
        await using other = await at().airlock.sandboxes.create({})
        const ranges = [one, other].map(({ data }) => data.isolation?.uidRange ?? { first: 0, count: 0 })
        const [low, high] = ranges.toSorted((a, b) => a.first - b.first)
        expect((low?.first ?? 0) + (low?.count ?? 0)).toBeLessThanOrEqual(high?.first ?? 0)
      })
  })
}

interface Place {
  server: BorrowedServer
  airlock: Airlock
  host: PlantedHost
}

/** Leaves something wherever something can be left, and stays. */
const LEAVE = String.raw`
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
KEY = 0x41495231
for place in ('/tmp', '/var/tmp', '/dev/shm', '/workspace', '/home/user', '/run/lock', '/run', '/opt', '/grants', '/dev/mqueue'):
    try: open(place + '/residue', 'w').write('left behind')
    except OSError: pass
ids = libc.shmget(KEY, 4096, 0o1666), libc.semget(KEY, 1, 0o1666), libc.msgget(KEY, 0o1666)
listener = socket.socket(socket.AF_UNIX); listener.bind('\0residue'); listener.listen()
port = socket.create_server(('127.0.0.1', 4711))
print('left', [i >= 0 for i in ids], flush=True)
time.sleep(600)
`

/** Looks for all of it. */
const LOOK = String.raw`
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
KEY = 0x41495231
found = []
for place in ('/tmp', '/var/tmp', '/dev/shm', '/workspace', '/home/user', '/run/lock', '/run', '/opt', '/grants', '/dev/mqueue'):
    if os.path.lexists(place + '/residue'): found.append(place)
if libc.shmget(KEY, 0, 0) >= 0: found.append('shared memory')
if libc.semget(KEY, 0, 0) >= 0: found.append('semaphore')
if libc.msgget(KEY, 0) >= 0: found.append('message queue')
for where in ('\0residue', ('127.0.0.1', 4711)):
    try:
        socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET).connect(where); found.append('socket')
    except OSError: pass
for pid in [pid for pid in os.listdir('/proc') if pid.isdigit()]:
    try:
        if 'leave.py' in open('/proc/%s/cmdline' % pid).read(): found.append('process')
    except OSError: pass
print(sorted(found))
`

async function leave(sandbox: Sandbox): Promise<void> {
  await sandbox.files.write('leave.py', LEAVE)
  const left = await sandbox.start(['python3', 'leave.py'], { timeoutMs: 600_000 })
  for await (const event of left) if (event.event === 'output') break
}

async function look(sandbox: Sandbox): Promise<string> {
  await sandbox.files.write('look.py', LOOK)
  const { stdout, stderr } = await sandbox.run(['python3', 'look.py'], { timeoutMs: 60_000 })
  return (stdout + stderr).trim()
}

async function expectNothingLeft({ server, airlock }: Place, tier: 'standard' | 'strict'): Promise<void> {
  const first = await airlock.sandboxes.create({ tier })
  await using beside = await airlock.sandboxes.create({ tier })
  await leave(first)
  const own = ['/dev/shm', '/home/user', '/tmp', '/workspace', 'process', 'socket', 'socket']
  expect(JSON.parse((await look(first)).replaceAll("'", '"'))).toEqual(expect.arrayContaining(own))
  expect(await look(beside)).toBe('[]')
  await first.terminate()
  expect(traces(server, first)).toEqual([])
  await using next = await airlock.sandboxes.create({ tier })
  expect(await look(next)).toBe('[]')
}

/** Swaps a file for links to the flags of the host and to a file inside, and a directory for a link, as fast as it can. */
const SWAP = String.raw`
import itertools, os, shutil, time
os.makedirs('race', exist_ok=True); os.chdir('race')
targets = [None, os.environ['FLAG_ROOT'], os.environ['FLAG_WORLD'], '/etc/passwd', '../../../../../../..' + os.environ['FLAG_WORLD'], '/proc/1/root' + os.environ['FLAG_ROOT']]
print('swapping', flush=True)
until = time.monotonic() + 50
for at in itertools.count():
    if time.monotonic() > until or os.path.exists('../stop'): break
    target = targets[at % len(targets)]
    try:
        if target is None: open('next', 'w').write('plain')
        else: os.symlink(target, 'next')
        os.rename('next', 'file')
        if at % 2: os.makedirs('made/below', exist_ok=True); open('made/below/x', 'w').close(); os.rename('made', 'dir')
        else: os.symlink('/', 'link'); os.rename('link', 'dir')
    except OSError:
        for name in ('made', 'dir'): shutil.rmtree(name, ignore_errors=True)
        for name in ('dir', 'link', 'next'):
            try: os.unlink(name)
            except OSError: pass
`

async function expectNotLedAstray({ airlock, host }: Place, tier: 'standard' | 'strict'): Promise<void> {
  const before = watched(host)
  await using sandbox = await airlock.sandboxes.create({ tier, env: host.env })
  await sandbox.files.write('swap.py', SWAP)
  const swapper = await sandbox.start(['python3', 'swap.py'], { timeoutMs: 120_000 })
  for await (const event of swapper) if (event.event === 'output') break
  const seen = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    const said = await Promise.all([
      outcome(sandbox.files.readText('race/file')),
      outcome(sandbox.files.write('race/file', 'from outside')),
      outcome(sandbox.files.list('race/dir').then(() => 'listed')),
      outcome(sandbox.files.stat('race/file').then(({ kind }) => `stat ${kind}`)),
      outcome(sandbox.files.remove('race/dir', { recursive: true })),
    ])
    for (const one of said) seen.add(one)
  }
  await sandbox.files.write('stop', '')
  await swapper.wait()
  // The race was real: the same path was a plain file, and something else.
  expect(seen.size).toBeGreaterThan(3)
  expect([...seen].filter((text) => text.includes(host.flags.root) || text.includes(host.flags.world))).toEqual([])
  expect(watched(host)).toEqual(before)
}

const ROUNDS = 40

async function outcome(work: Promise<unknown>): Promise<string> {
  return await work.then(
    (value) => String(value).slice(0, 200),
    (error: unknown) => String(error).slice(0, 200),
  )
}

/** Files of the host that the links point at, and the roots that a delete would be led to. */
function watched(host: PlantedHost): readonly string[] {
  const files = [host.env['FLAG_ROOT'] ?? '', host.env['FLAG_WORLD'] ?? '', '/etc/passwd']
  const hashes = files.map((path) => {
    const { mode, uid, ino } = statSync(path)
    return [path, mode, uid, ino, createHash('sha256').update(readFileSync(path)).digest('hex')].join(' ')
  })
  return [...hashes, readdirSync('/').toSorted().join(' '), readdirSync('/etc').toSorted().join(' ')]
}

/** What the host has that bears the id of a sandbox or one of its uids. */
function traces(server: BorrowedServer, { id, data }: Sandbox): readonly string[] {
  const { first = 0, count = 0 } = data.isolation?.uidRange ?? {}
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  const groups = mounts.flatMap((line) => {
    const at = / - cgroup2? /u.test(line) ? (line.split(' ')[4] ?? '') : ''
    return at === ''
      ? []
      : readdirSync(at)
          .filter((name) => name.startsWith('airlock-'))
          .map((name) => `${at}/${name}`)
  })
  const owners = readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .filter((pid) => {
      const uid = statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid ?? 0
      return count > 1 && uid >= first && uid < first + count && isStray(pid)
    })
  return [
    ...server.processesOf(id).map((pid) => `process ${pid}`),
    ...owners.map((pid) => `uid of ${pid}`),
    ...mounts.filter((line) => line.includes(id)),
    ...groups.filter((group) => existing(group).includes(id)),
    ...existing(`${server.home}/data-plane/sandboxes`).filter((name) => name === id),
    ...existing(`${server.home}/run/sandboxes`).filter((name) => name === id),
  ]
}

/** Whether a process lives and is of no sandbox: a range that was given back may be another's by now. */
function isStray(pid: string): boolean {
  try {
    const isZombie = /^State:\s*Z/mu.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return !isZombie && !readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes('/sbx_')
  } catch {
    // It ended while we looked.
    return false
  }
}

function existing(directory: string): readonly string[] {
  return statSync(directory, { throwIfNoEntry: false }) ? readdirSync(directory) : []
}
