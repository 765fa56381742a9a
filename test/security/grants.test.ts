import { Airlock, type AddGrantOptions, type AirlockError, type CreateOptions, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { finalLeftovers, startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

/** Somebody of the host who is not root; no user has to be made for files to be somebody's. */
const OWNER = { uid: 42_420, gid: 42_421 }

let server: TestServer
let admin: Airlock
let base: string
/** A directory of the host for one test. */
let place: string
const made: Sandbox[] = []
let agent: string
let agents = 0

beforeAll(async () => {
  base = mkdtempSync('/var/tmp/airlock-grants-')
  server = await startServer()
  await switchShippedRulesOff(server)
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
}, 240_000)

beforeEach(async () => {
  agent = `agent-${++agents}`
  place = mkdtempSync(join(base, 'test-'))
  await admin.agents.register(agent, { approve: true })
})

afterEach(async () => {
  for (const sandbox of made.splice(0)) await sandbox.terminate()
})

afterAll(async () => {
  await server?.stop()
  if (base) rmSync(base, { recursive: true, force: true })
})

describe('a rw grant on the tree of an ordinary user', requires('root', 'python3'), () => {
  it('is read and written by user code, and stays what it was on the host', async () => {
    const tree = makeTree('mine')
    const grant = await admin.grants.add(agent, tree, { mode: 'rw' })
    const sandbox = await create({ agent })
    const mount = { grant: grant.id, path: tree, target: '/grants/mine', mode: 'rw', kind: 'dir' } as const
    expect(sandbox.data.mounts).toEqual([mount])
    expect((await admin.sandboxes.get(sandbox.id)).data.mounts).toEqual([mount])
    const seen = await shell(
      sandbox,
      `cd /grants/mine; id -u; stat -c '%u:%g %a' . note deep; cat note deep/er
       echo more >>note; echo new >new; mkdir -m 750 made; mv deep/er made/er; rm gone`,
    )
    expect(seen).toBe('1000\n1000:1000 700\n1000:1000 600\n1000:1000 700\nhello\ninner\n')
    expect(snapshot(tree)).toEqual({
      '': `d 700 ${OWNER.uid}:${OWNER.gid}`,
      deep: `d 700 ${OWNER.uid}:${OWNER.gid}`,
      made: `d 750 ${OWNER.uid}:${OWNER.gid}`,
      'made/er': `f 600 ${OWNER.uid}:${OWNER.gid} inner\n`,
      new: `f 644 ${OWNER.uid}:${OWNER.gid} new\n`,
      note: `f 600 ${OWNER.uid}:${OWNER.gid} hello\nmore\n`,
    })
    await sandbox.terminate()
    expect([mountsOf(tree), await finalLeftovers(server.home)]).toEqual([[], []])
  })

  it('makes no set-uid or set-gid file on the host, by any way there is, and no device', async () => {
    const tree = makeTree('bits')
    await admin.grants.add(agent, tree, { mode: 'rw', target: '/workspace/bits' })
    const sandbox = await create({ agent })
    const { stdout, stderr } = await sandbox.run(['python3', '-c', SET_BITS], { timeoutMs: 60_000 })
    expect(stderr).toBe('')
    expect(stdout.trim().split('\n')).toEqual(WAYS.map((way) => `${way}: refused`))
    const special = Object.entries(snapshot(tree)).filter(([, what]) => !/^[df] [0-7]{3} /.test(what))
    expect(special).toEqual([])
    expect(await shell(sandbox, 'grep " /workspace/bits " /proc/self/mountinfo')).toMatch(/ rw,nosuid,nodev,/)
  })

  it('is refused with patterns, for what is written cannot be masked', async () => {
    const refused = admin.grants.add(agent, makeTree('patterned'), { mode: 'rw', blocked: ['*.key'] })
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('has what other owners have in it only as far as everybody may', async () => {
    const tree = makeTree('mixed')
    write(join(tree, 'of-root'), 'root only', { uid: 0, gid: 0 })
    await admin.grants.add(agent, tree, { mode: 'rw' })
    const sandbox = await create({ agent })
    expect(await failing(sandbox, 'cat /grants/mixed/of-root')).toMatch(/Permission denied/)
    expect(await failing(sandbox, 'echo x >/grants/mixed/of-root')).toMatch(/Permission denied/)
  })
})

describe('a tree of root', requires('root', 'python3'), () => {
  it('is refused for writing; read-only shows what everybody may read', async () => {
    const tree = makeTree('roots', { uid: 0, gid: 0 })
    chmodSync(tree, 0o755)
    write(join(tree, 'public'), 'for all', { uid: 0, gid: 0 }, 0o644)
    expect(await refusal(tree, { mode: 'rw' })).toMatch(/belongs to root/)
    await admin.grants.add(agent, tree)
    const sandbox = await create({ agent })
    expect(await shell(sandbox, 'cat /grants/roots/public')).toBe('for all')
    expect(await failing(sandbox, 'cat /grants/roots/note')).toMatch(/Permission denied/)
    expect(await failing(sandbox, 'echo x >/grants/roots/public')).toMatch(/Read-only file system/)
  })

  it('is refused for writing also where only its group is root', async () => {
    expect(await refusal(makeTree('group', { uid: OWNER.uid, gid: 0 }), { mode: 'rw' })).toMatch(/belongs to root/)
  })
})

describe('a ro grant', requires('root', 'python3'), () => {
  it('cannot be written in any way', async () => {
    const tree = makeTree('still')
    const before = snapshot(tree)
    await admin.grants.add(agent, tree, { mode: 'ro', target: '/home/user/still' })
    const sandbox = await create({ agent })
    expect(await shell(sandbox, 'cat ~/still/note')).toBe('hello\n')
    const tries = [
      'echo x >>note',
      'echo x >new',
      'mkdir new',
      'rm note',
      'mv note new',
      'chmod 777 note',
      'ln note new',
    ]
    const more = ['touch note', 'truncate -s 0 note', 'mount -o remount,rw .', 'umount .']
    for (const attempt of [...tries, ...more])
      expect(await failing(sandbox, `cd ~/still && ${attempt}`)).toMatch(
        /Read-only|permitted|superuser|denied|No such file/,
      )
    expect(snapshot(tree)).toEqual(before)
  })

  it('on a file shows that file and no sibling', async () => {
    const tree = makeTree('single')
    const grant = await admin.grants.add(agent, join(tree, 'note'), { kind: 'file' })
    expect(grant).toMatchObject({ kind: 'file', target: '/grants/note' })
    const sandbox = await create({ agent })
    expect(await shell(sandbox, 'ls -A /grants; cat /grants/note')).toBe('note\nhello\n')
    expect(await failing(sandbox, 'cat /grants/note/../gone')).toMatch(/Not a directory/)
  })

  it('on a file that may be written writes that file', async () => {
    const tree = makeTree('one')
    await admin.grants.add(agent, join(tree, 'note'), { mode: 'rw', target: '/workspace/note' })
    const sandbox = await create({ agent })
    expect(await shell(sandbox, 'echo more >>note; cat note; stat -c %u:%a note')).toBe('hello\nmore\n1000:600\n')
    expect(snapshot(tree)['note']).toBe(`f 600 ${OWNER.uid}:${OWNER.gid} hello\nmore\n`)
  })

  it('with patterns has only what they leave, also of what comes later', async () => {
    const tree = makeTree('masked')
    for (const name of ['a.txt', 'b.key', 'deep/c.txt', 'deep/d.key', 'deep/e.md']) write(join(tree, name), name)
    mkdirSync(join(tree, 'hidden'))
    write(join(tree, 'hidden/f.txt'), 'f')
    symlinkSync('b.key', join(tree, 'link.txt'))
    const options = { allowed: ['*.txt', 'deep/*.key'], blocked: ['hidden', 'deep/d.*'] }
    const grant = await admin.grants.add(agent, tree, options)
    expect(grant).toMatchObject(options)
    const sandbox = await create({ agent })
    const list = 'cd /grants/masked && find . -mindepth 1 | sort'
    const there = './a.txt\n./deep\n./deep/c.txt\n./link.txt\n'
    expect(await shell(sandbox, list)).toBe(there)
    expect(await shell(sandbox, 'cat /grants/masked/deep/c.txt')).toBe('deep/c.txt')
    expect(await failing(sandbox, 'cat /grants/masked/link.txt')).toMatch(/No such file/)
    for (const attempt of ['>a.txt', '>new', 'rm a.txt', 'mkdir deep/x'])
      expect(await failing(sandbox, `cd /grants/masked && ${attempt}`)).toMatch(/Read-only|denied/)
    write(join(tree, 'late.txt'), 'late')
    renameSync(join(tree, 'b.key'), join(tree, 'a.txt'))
    expect(await shell(sandbox, `${list}; cat a.txt`)).toBe(`${there}a.txt`)
    await sandbox.terminate()
    expect(mountsOf(tree)).toEqual([])
  })
})

describe('nothing granted', () => {
  it('is nothing visible, and grants of one agent are not of another', async () => {
    await admin.grants.add(agent, makeTree('others'))
    const sandbox = await create()
    expect(sandbox.data.mounts).toEqual([])
    expect(await shell(sandbox, 'ls -A /grants')).toBe('')
  })

  it('is left to a new agent by a deleted one of the same name', async () => {
    await admin.grants.add(agent, makeTree('left'))
    await admin.agents.remove(agent)
    await admin.agents.register(agent, { approve: true })
    expect(await admin.grants.list(agent)).toEqual([])
  })
})

describe('targets', requires('root', 'python3'), () => {
  it.each([
    '/usr/x',
    '/proc/x',
    '/dev/x',
    '/opt/airlock/x',
    '/run/x',
    '/etc/x',
    '/tmp/x',
    '/grants',
    '/workspace',
    'x',
  ])('%s is refused', async (target) => {
    await expect(admin.grants.add(agent, place, { target })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('do not lie in each other, for a mount point would be made in what is granted', async () => {
    const [one, two] = [makeTree('outer'), makeTree('inner')]
    await admin.grants.add(agent, one, { mode: 'rw', target: '/grants/a/b' })
    for (const target of ['/grants/a', '/grants/a/b', '/grants/a/b/c'])
      await expect(admin.grants.add(agent, two, { target })).rejects.toMatchObject({ code: 'grant_exists' })
    await admin.grants.add(agent, two, { target: '/grants/a/c' })
    const sandbox = await create({ agent })
    expect(await shell(sandbox, 'cat /grants/a/b/note /grants/a/c/note')).toBe('hello\nhello\n')
  })
})

describe('what is never granted', requires('root', 'python3'), () => {
  const SENSITIVE = [
    '/',
    '/etc',
    '/etc/ssl',
    '/root',
    '/proc',
    '/proc/self',
    '/sys',
    '/sys/fs/cgroup',
    '/dev',
    '/boot',
    '/run',
  ]
  const MORE = ['/var', '/var/lib', '/home', '/var/backups', '/tmp']

  it.each([...SENSITIVE, ...MORE].filter((path) => existsSync(path)))('%s', async (path) => {
    expect(await refusal(path)).toMatch(/never granted|part of the kernel|home directory|following a link/)
    await expect(admin.grants.add(agent, `${path.replace(/\/$/, '')}/`)).rejects.toMatchObject({ code: anyOf(path) })
    await expect(admin.grants.add(agent, `${place}/../../../..${path}`)).rejects.toMatchObject({ code: 'invalid_path' })
    const link = join(place, `link-${agents}`)
    symlinkSync(path, link)
    expect(await refusal(link)).toMatch(/following a link/)
    if (lstatSync(`${path}/.`).isDirectory()) expect(await refusal(`${link}/ssl`)).toMatch(/following a link/)
  })

  it.each(['/etc', '/etc/ssl', '/root', '/proc', '/sys', '/dev', '/run', '/home', '/var'])(
    '%s under another name, by a bind mount',
    async (path) => {
      const bound = join(place, `bound-${agents}`)
      mkdirSync(bound)
      execFileSync('mount', ['--bind', path, bound])
      try {
        expect(await refusal(bound)).toMatch(/never granted|part of the kernel|home directory/)
      } finally {
        execFileSync('umount', [bound])
      }
    },
  )

  it('what is mounted below a grant is not seen through it', async () => {
    const tree = makeTree('holder')
    mkdirSync(join(tree, 'etc'))
    chownSync(join(tree, 'etc'), OWNER.uid, OWNER.gid)
    execFileSync('mount', ['--bind', '/etc', join(tree, 'etc')])
    try {
      await admin.grants.add(agent, tree, { mode: 'rw' })
      const sandbox = await create({ agent })
      expect(await shell(sandbox, 'ls -A /grants/holder/etc')).toBe('')
      await sandbox.terminate()
    } finally {
      execFileSync('umount', [join(tree, 'etc')])
    }
  })

  it('our own state, what is in it, and what it is in', async () => {
    for (const path of [server.home, join(server.home, 'control-plane'), join(server.home, 'admin.key')])
      expect(await refusal(path)).toMatch(/never granted/)
  })

  it.each(['.ssh', '.gnupg', '.aws', '.config/gcloud', '.kube', '.docker', '.netrc', '.npmrc', '.git-credentials'])(
    '%s, what is in it, and a directory that has it',
    async (secret) => {
      const home = makeTree(`home-${agents}`)
      mkdirSync(join(home, secret), { recursive: true })
      mkdirSync(join(home, 'project'))
      write(join(home, secret, 'inside'), 'secret')
      for (const path of [home, join(home, secret), join(home, secret, 'inside')])
        expect(await refusal(path)).toMatch(/secrets/)
      await admin.grants.add(agent, join(home, 'project'))
    },
  )

  describe('secrets deep in what is granted', () => {
    const bury = (name: string): string => {
      const tree = makeTree(name)
      for (const dir of ['a', 'a/b', 'a/b/.ssh', 'a/.aws', 'keys'].map((inner) => join(tree, inner))) {
        mkdirSync(dir)
        chownSync(dir, OWNER.uid, OWNER.gid)
      }
      write(join(tree, 'a/b/.ssh/id_rsa'), 'secret')
      write(join(tree, 'a/.aws/credentials'), 'secret')
      write(join(tree, 'keys/id_ed25519'), 'secret')
      write(join(tree, 'keys/id_ed25519.pub'), 'public')
      return tree
    }

    it('are not seen when it is for reading, and all the rest is', async () => {
      const tree = bury('buried')
      await admin.grants.add(agent, tree)
      const sandbox = await create({ agent })
      const line = 'cd /grants/buried; find . -type f | sort | while read f; do echo "$f $(cat $f)"; done'
      expect((await shell(sandbox, line)).split('\n')).toEqual([
        './deep/er inner',
        './gone ',
        './keys/id_ed25519 ',
        './keys/id_ed25519.pub public',
        './note hello',
        '',
      ])
      expect(await shell(sandbox, 'cd /grants/buried; ls -A a/b/.ssh a/.aws')).toBe('a/.aws:\n\na/b/.ssh:\n')
      expect(readFileSync(join(tree, 'keys/id_ed25519'), 'utf8')).toBe('secret')
      await sandbox.terminate()
      expect([mountsOf(tree), await finalLeftovers(server.home)]).toEqual([[], []])
    })

    it('are not seen where patterns leave more than them', async () => {
      await admin.grants.add(agent, bury('patterned'), { blocked: ['note'] })
      const sandbox = await create({ agent })
      const seen = await shell(sandbox, 'cd /grants/patterned; find . -type f | sort')
      expect(seen).toBe('./deep/er\n./gone\n./keys/id_ed25519.pub\n')
    })

    it.each([
      [{ mode: 'rw' }, /has secrets in it \(a\/\.aws\), so it cannot be granted for writing/],
      [{ target: '/workspace/tree' }, /has secrets in it \(a\/\.aws\); below \/grants they can be masked/],
    ] as const)('are refused with %j, and named', async (options, message) => {
      const refused = admin.grants.add(agent, bury('refused'), options)
      await expect(refused).rejects.toMatchObject({ code: 'grant_refused', message: expect.stringMatching(message) })
    })
  })

  it('secrets that come after a grant for writing keep it from being mounted', async () => {
    const tree = makeTree('later')
    await admin.grants.add(agent, tree, { mode: 'rw' })
    write(join(tree, 'deep/id_rsa'), 'secret')
    await expect(create({ agent })).rejects.toMatchObject({ code: 'grant_refused' })
  })

  it('sockets, devices, and files with another name', async () => {
    const dir = makeTree('special')
    linkSync(join(dir, 'note'), join(place, 'other-name'))
    expect(await refusal(join(dir, 'note'))).toMatch(/other names/)
    execFileSync('python3', ['-c', 'import os, sys; os.mkfifo(sys.argv[1])', join(dir, 'fifo')])
    expect(await refusal(join(dir, 'fifo'))).toMatch(/neither a file nor a directory/)
    const listener = createServer().listen(join(dir, 'socket'))
    await waitFor(() => (existsSync(join(dir, 'socket')) ? true : undefined), {
      signal: deadline(100_000),
      everyMs: 10,
    })
    expect(await refusal(join(dir, 'socket'))).toMatch(/neither a file nor a directory/)
    await new Promise((resolve) => listener.close(resolve))
    expect(await refusal('/dev/null')).toMatch(/neither a file nor a directory/)
  })
})

describe('between grant and mount', requires('root', 'python3'), () => {
  it('a link in the place of the tree, or of a directory above it, opens nothing', async () => {
    const above = join(place, 'above')
    mkdirSync(above)
    const tree = makeTree('above/tree')
    await admin.grants.add(agent, tree)
    const swaps = [
      { path: tree, to: '/etc' },
      { path: above, to: `${place}/moved` },
    ]
    for (const { path, to } of swaps) {
      renameSync(path, `${place}/moved`)
      symlinkSync(to, path)
      await expect(create({ agent })).rejects.toMatchObject({ code: 'grant_refused' })
      rmSync(path)
      renameSync(`${place}/moved`, path)
    }
    const sandbox = await create({ agent })
    expect(await shell(sandbox, 'cat /grants/tree/note')).toBe('hello\n')
  })

  it('another tree in its place is not what was granted, and neither is nothing', async () => {
    const tree = makeTree('replaced')
    await admin.grants.add(agent, tree)
    renameSync(tree, `${tree}-before`)
    await expect(create({ agent })).rejects.toMatchObject({ code: 'grant_refused' })
    makeTree('replaced')
    const error = await create({ agent }).catch((thrown: AirlockError) => thrown)
    expect(error).toMatchObject({ code: 'grant_refused', message: expect.stringMatching(/not what was granted/) })
    const { items } = await admin.sandboxes.list({ agent, state: 'all' })
    expect(items.map(({ data }) => [data.state, data.error?.code])).toEqual([
      ['error', 'grant_refused'],
      ['error', 'grant_refused'],
    ])
    expect(await finalLeftovers(server.home)).toEqual([])
  })

  it('a tree that became root’s is no longer mounted for writing', async () => {
    const tree = makeTree('taken')
    await admin.grants.add(agent, tree, { mode: 'rw' })
    chownSync(tree, 0, 0)
    await expect(create({ agent })).rejects.toMatchObject({ code: 'grant_refused' })
  })

  it('a link that is swapped in and out all the time shows nothing but the tree', async () => {
    const tree = makeTree('race')
    await admin.grants.add(agent, tree)
    symlinkSync('/etc', `${tree}-link`)
    const swapper = spawn('python3', ['-c', SWAP, tree, `${tree}-link`], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      await new Promise((resolve) => swapper.stdout.once('data', resolve))
      const outcomes: string[] = []
      for (let round = 0; round < 12; round++) outcomes.push(await seenIn(tree))
      expect(new Set(['hello\n', 'grant_refused', ...outcomes])).toEqual(new Set(['hello\n', 'grant_refused']))
    } finally {
      swapper.kill('SIGKILL')
      await new Promise((resolve) => swapper.once('close', resolve))
    }
    expect(mountsOf(tree)).toEqual([])
  })
})

describe('a grant that is taken back', requires('root', 'python3'), () => {
  it('ends the sandboxes that hold it, and no other; evidence says who gave and who took', async () => {
    const tree = makeTree('back')
    const grant = await admin.grants.add(agent, tree, { mode: 'rw' })
    expect(await admin.grants.list(agent)).toEqual([grant])
    const holder = await create({ agent })
    const other = await create()
    await holder.start(['sleep', '600'])
    await admin.grants.remove(agent, grant.id)
    expect((await holder.refresh()).data).toMatchObject({ state: 'stopped', endReason: 'grant_revoked' })
    expect((await other.refresh()).data.state).toBe('active')
    expect([server.processesOf(holder.id), mountsOf(tree), await admin.grants.list(agent)]).toEqual([[], [], []])
    await expect(admin.grants.remove(agent, grant.id)).rejects.toMatchObject({ code: 'grant_not_found' })
    const later = await create({ agent })
    expect([later.data.mounts, await shell(later, 'ls -A /grants')]).toEqual([[], ''])
    const { items } = await admin.audit.events({ agent, limit: 100 })
    const story = items
      .filter(({ point }) => point.startsWith('grant.'))
      .map(({ point, status }) => `${point} ${status}`)
    expect(story.toReversed()).toEqual([
      'grant.add requested',
      'grant.add done',
      'grant.remove done',
      'grant.remove denied',
    ])
  })

  it('is given by the platform only, to an agent of any tenant, and taken back by its operators', async () => {
    const tenant = `tenant-${agents}`
    await admin.tenants.create(tenant)
    const key = async (role: 'admin' | 'operator' | 'developer') =>
      new Airlock({ url: server.url, apiKey: (await admin.keys.create({ name: role, role, tenant })).secret })
    const [boss, operator, developer] = [await key('admin'), await key('operator'), await key('developer')]
    const tree = makeTree('tenants')
    await expect(boss.grants.add('default', tree)).rejects.toMatchObject({ code: 'forbidden' })
    const grant = await admin.grants.add('default', tree, { tenant })
    expect(await developer.grants.list('default')).toEqual([grant])
    await expect(developer.grants.remove('default', grant.id)).rejects.toMatchObject({ code: 'forbidden' })
    const sandbox = await developer.sandboxes.create()
    expect(await shell(sandbox, 'cat /grants/tenants/note')).toBe('hello\n')
    await operator.grants.remove('default', grant.id)
    expect((await sandbox.refresh()).data.endReason).toBe('grant_revoked')
  })
})

describe('airlock grant', requires('root', 'python3'), () => {
  it('adds, lists and removes, also by its other name', async () => {
    const tree = makeTree('by hand')
    const id = airlock('grant', 'add', agent, `${tree}/`, '--block', '*.key', '--block', '.env').trim()
    const listed = JSON.parse(airlock('acl', 'ls', agent, '--json')) as unknown
    expect(listed).toEqual(await admin.grants.list(agent))
    expect(listed).toMatchObject([
      { id, path: tree, target: '/grants/by_hand', mode: 'ro', blocked: ['*.key', '.env'] },
    ])
    expect(airlock('grant', 'ls', agent)).toContain('/grants/by_hand')
    expect(airlock('grant', 'rm', agent, id).trim()).toBe(id)
    expect(await admin.grants.list(agent)).toEqual([])
  })
})

describe('under the other runtime', requires('root', 'python3', 'runc'), () => {
  it('all of a grant holds as well: the owner, the mode, and the view that patterns leave', async () => {
    const other = await startServer({ env: { AIRLOCK_RUNTIME: 'runc' } })
    try {
      const api = new Airlock({ url: other.url, apiKey: other.adminKey })
      const tree = makeTree('both')
      await api.grants.add('default', tree, { mode: 'rw', target: '/workspace/both' })
      await api.grants.add('default', tree, { allowed: ['note'], target: '/grants/view' })
      const sandbox = await api.sandboxes.create()
      expect(sandbox.data.isolation?.runtime).toMatch(/^runc/)
      expect(await shell(sandbox, 'echo new >both/new; find /grants/view; cat /grants/view/note')).toBe(
        '/grants/view\n/grants/view/note\nhello\n',
      )
      expect(await failing(sandbox, 'echo x >/grants/view/note')).toMatch(/Read-only/)
      expect(snapshot(tree)['new']).toBe(`f 644 ${OWNER.uid}:${OWNER.gid} new\n`)
    } finally {
      await other.stop()
    }
  })
})

const AIRLOCK = fileURLToPath(new URL('../../packages/cli/bin/airlock.js', import.meta.url))

function airlock(...words: readonly string[]): string {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.adminKey }
  return execFileSync(process.execPath, [AIRLOCK, ...words], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

const WAYS = [
  'chmod',
  'fchmod',
  'fchmodat',
  'fchmodat2',
  'open',
  'openat',
  'openat2',
  'creat',
  'mknod',
  'tmpfile',
  'chr',
  'cp',
]

/** Each way by which a bit could get onto a file. */
const SET_BITS = `
import ctypes, os, stat, struct, subprocess
os.chdir('/workspace/bits')
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open('plain', os.O_CREAT | os.O_RDWR, 0o755)
def call(number, *args):
    if libc.syscall(number, *args) < 0: raise OSError(ctypes.get_errno(), 'refused')
how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o6755, 0)
ways = {
    'chmod': lambda: os.chmod('plain', 0o4755),
    'fchmod': lambda: os.fchmod(fd, 0o2755),
    'fchmodat': lambda: call(268, -100, b'plain', 0o6755),
    'fchmodat2': lambda: call(452, -100, b'plain', 0o6755, 0),
    'open': lambda: call(2, b'o1', os.O_CREAT | os.O_WRONLY, 0o4755),
    'openat': lambda: os.open('o2', os.O_CREAT | os.O_WRONLY, 0o4755),
    'openat2': lambda: call(437, -100, b'o3', how, len(how)),
    'creat': lambda: call(85, b'o4', 0o4755),
    'mknod': lambda: os.mknod('o5', stat.S_IFREG | 0o4755),
    'tmpfile': lambda: os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755),
    'chr': lambda: os.mknod('o6', stat.S_IFCHR | 0o666, os.makedev(1, 3)),
    'cp': lambda: subprocess.run(['cp', '--preserve=mode', '/usr/bin/passwd', 'o7'], check=True, capture_output=True),
}
for name, way in ways.items():
    try:
        way()
        bad = any(os.lstat(x).st_mode & 0o6000 or stat.S_ISCHR(os.lstat(x).st_mode) for x in os.listdir('.'))
        print(name + (': made' if bad or name != 'cp' else ': refused'))
    except (OSError, subprocess.CalledProcessError):
        print(name + ': refused')
`

/** Puts a link in the place of a directory and back, as fast as it can. */
const SWAP = `
import ctypes, sys
libc = ctypes.CDLL(None)
one, two = (path.encode() for path in sys.argv[1:])
print('ready', flush=True)
while True: libc.renameat2(-100, one, -100, two, 2)
`

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** A directory 0700 with files 0600. */
function makeTree(name: string, owner: Owner = OWNER): string {
  const tree = join(place, name)
  mkdirSync(join(tree, 'deep'), { recursive: true })
  write(join(tree, 'note'), 'hello\n', owner)
  write(join(tree, 'gone'), '', owner)
  write(join(tree, 'deep/er'), 'inner\n', owner)
  for (const path of [tree, join(tree, 'deep')]) {
    chmodSync(path, 0o700)
    chownSync(path, owner.uid, owner.gid)
  }
  return tree
}

// oxlint-disable-next-line max-params -- a file is these
function write(path: string, text: string, owner: Owner = OWNER, mode = 0o600): void {
  writeFileSync(path, text)
  chmodSync(path, mode)
  chownSync(path, owner.uid, owner.gid)
}

/** Everything of a tree: kind, mode with all its bits, owner, content. */
function snapshot(tree: string): Readonly<Record<string, string>> {
  const names = ['', ...readdirSync(tree, { recursive: true, encoding: 'utf8' })].toSorted()
  return Object.fromEntries(
    names.map((name) => {
      const path = join(tree, name)
      const stat = lstatSync(path)
      const kind = stat.isDirectory() ? 'd' : stat.isFile() ? 'f' : 'other'
      const said = `${kind} ${(stat.mode & 0o7777).toString(8)} ${stat.uid}:${stat.gid}`
      return [name, stat.isFile() ? `${said} ${readFileSync(path, 'utf8')}` : said]
    }),
  )
}

/** In every mount namespace of the host. */
function mountsOf(path: string): readonly string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    const lines = attempt(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n')) ?? []
    return lines.filter((line) => line.includes(path)).map((line) => `${pid}: ${line}`)
  })
}

/** A process may be gone by now. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** One that ends with the test. */
async function create(options: CreateOptions = {}): Promise<Sandbox> {
  const sandbox = await admin.sandboxes.create(options)
  made.push(sandbox)
  return sandbox
}

async function shell(sandbox: Sandbox, script: string): Promise<string> {
  const result = await sandbox.run(['sh', '-euc', script], { timeoutMs: 30_000 })
  expect([result.stderr, result.exitCode]).toEqual(['', 0])
  return result.stdout
}

/** What a script that must fail says. */
async function failing(sandbox: Sandbox, script: string): Promise<string> {
  const result = await sandbox.run(['sh', '-euc', script], { timeoutMs: 30_000 })
  expect(result.exitCode).not.toBe(0)
  return result.stderr
}

async function refusal(path: string, options: AddGrantOptions = {}): Promise<string> {
  const thrown = await admin.grants.add(agent, path, options).catch((error: AirlockError) => error)
  expect(thrown).toMatchObject({ code: 'grant_refused' })
  return 'message' in thrown ? thrown.message : ''
}

/** A slash at the end is not exact, but the root is nothing else. */
function anyOf(path: string): string {
  return path === '/' ? 'grant_refused' : 'invalid_path'
}

async function seenIn(tree: string): Promise<string> {
  try {
    const sandbox = await create({ agent })
    const seen = await sandbox.run(['sh', '-c', `cat /grants/${tree.split('/').at(-1)}/note`])
    await sandbox.terminate()
    return seen.stdout
  } catch (error) {
    return (error as AirlockError).code
  }
}
