import { Airlock, type Sandbox } from '@airlock/sdk'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

/** What a program sees when it looks around in a sandbox of the running product. */
let server: BorrowedServer
let sandbox: Sandbox

beforeAll(async () => {
  server = await borrowServer('off')
  const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  sandbox = await airlock.sandboxes.create({})
})

afterAll(async () => server?.giveBack())

async function python(program: string): Promise<string> {
  const result = await sandbox.run(['python3', '-c', program], { timeoutMs: 30_000 })
  expect(result.stderr).toBe('')
  return result.stdout.trim()
}

describe('user code', () => {
  it('has no capability in any set, cannot gain one, and runs under a filter', async () => {
    const status = await python(`
wanted = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Uid', 'Gid', 'Groups')
for line in open('/proc/self/status'):
    if line.split(':')[0] in wanted: print(' '.join(line.split()))
`)
    expect(status.split('\n').toSorted()).toEqual(
      [
        'CapAmb: 0000000000000000',
        'CapBnd: 0000000000000000',
        'CapEff: 0000000000000000',
        'CapInh: 0000000000000000',
        'CapPrm: 0000000000000000',
        'Gid: 1000 1000 1000 1000',
        'Groups:',
        'NoNewPrivs: 1',
        'Seccomp: 2',
        'Uid: 1000 1000 1000 1000',
      ].toSorted(),
    )
  })

  it('sees its own processes only, and the guest as somebody else', async () => {
    const seen = await python(`
import os
for pid in sorted(int(p) for p in os.listdir('/proc') if p.isdigit()):
    print(pid, os.stat('/proc/%d' % pid).st_uid, open('/proc/%d/comm' % pid).read().strip())
`)
    const processes = seen.split('\n').map((line) => line.split(' '))
    expect(processes.length).toBeLessThan(8)
    expect(processes.filter(([, uid]) => uid === '1000').map(([, , comm]) => comm)).toEqual(['python3'])
  })

  it('cannot signal, trace, read or renice the guest, though the same calls work on a child of its own', async () => {
    const tried = await python(`
import ctypes, json, os, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
child = subprocess.Popen(['sleep', '30'])
def attempts(pid):
    def works(call):
        try:
            call(); return True
        except OSError: return False
    return {
        'signal': works(lambda: os.kill(pid, 0)),
        'environ': works(lambda: open('/proc/%d/environ' % pid, 'rb').read()),
        'fds': works(lambda: os.listdir('/proc/%d/fd' % pid)),
        'mem': works(lambda: open('/proc/%d/mem' % pid, 'r+b')),
        'root': works(lambda: os.listdir('/proc/%d/root/' % pid)),
    }
guests = [int(p) for p in os.listdir('/proc') if p.isdigit() and os.stat('/proc/' + p).st_uid != 1000]
time.sleep(0.2)
print(json.dumps({'own': attempts(child.pid), 'others': [attempts(pid) for pid in guests]}))
child.kill()
`)
    const { own, others } = JSON.parse(tried) as { own: Record<string, boolean>; others: Record<string, boolean>[] }
    expect(own).toEqual({ signal: true, environ: true, fds: true, mem: true, root: true })
    expect(others.length).toBeGreaterThanOrEqual(2)
    for (const other of others)
      expect(other).toEqual({ signal: false, environ: false, fds: false, mem: false, root: false })
  })

  it('finds no secret in any environment it can read, only the allowlist', async () => {
    const seen = await python(`
import os
for pid in [p for p in os.listdir('/proc') if p.isdigit()]:
    try: print(open('/proc/%s/environ' % pid).read().replace(chr(0), chr(10)))
    except OSError: pass
`)
    const names = new Set(
      seen
        .split('\n')
        .filter(Boolean)
        .map((line) => line.split('=')[0] ?? ''),
    )
    const installs = [...names].filter((name) => /^(?:PIP_|NPM_CONFIG_|PYTHONUSERBASE$)/u.test(name))
    expect([...names].filter((name) => !installs.includes(name)).toSorted()).toEqual([
      'AIRLOCK_AGENT_ID',
      'AIRLOCK_SANDBOX_ID',
      'AIRLOCK_SOCKET',
      'AIRLOCK_TOKEN_FILE',
      'GOMAXPROCS',
      'HOME',
      'LANG',
      'LOGNAME',
      'OMP_NUM_THREADS',
      'PATH',
      // Of the shell that is our wrapper of Python.
      'PWD',
      'PYTHON_CPU_COUNT',
      'RAYON_NUM_THREADS',
      'SHELL',
      'TMPDIR',
      'USER',
    ])
    expect(installs).toHaveLength(10)
    const key = (await readFile(`${server.home}/admin.key`, 'utf8')).trim()
    expect(seen).not.toContain(key)
    // The token of its door is in a file, never here.
    expect(seen).not.toContain('alt_')
  })

  it('inherits no descriptor but stdin, stdout and stderr', async () => {
    const seen = await python(`
import os
def is_open(fd):
    try: os.fstat(fd); return True
    except OSError: return False
print([fd for fd in range(1024) if is_open(fd)])
`)
    expect(JSON.parse(seen)).toEqual([0, 1, 2])
  })

  it('has loopback and no name service', async () => {
    const seen = await python(`
import socket, time
print([name for _, name in socket.if_nameindex()])
began = time.time()
try:
    socket.getaddrinfo('example.com', 80); print('resolved')
except OSError: print('unresolved')
print('fast' if time.time() - began < 5 else 'slow')
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
socket.create_connection(server.getsockname()).close(); print('loopback works')
`)
    expect(seen.split('\n')).toEqual(["['lo']", 'unresolved', 'fast', 'loopback works'])
  })

  it('sees of the host only what was declared: programs, never homes, state or secrets', async () => {
    const seen = await python(`
import json, os
root = sorted(os.listdir('/'))
etc = sorted(os.listdir('/etc'))
readable = [p for p in ('/root', '/home', '/etc/shadow', '/var/lib', '/boot', '/sys/kernel', '${server.home}', '/proc/1/root/etc', '/run/guest') if os.access(p, os.R_OK)]
print(json.dumps({'root': root, 'etc': etc, 'readable': readable, 'home': os.listdir('/home'), 'grants': os.listdir('/grants')}))
`)
    const { root, etc, readable, home, grants } = JSON.parse(seen) as Record<string, string[]>
    const allowed = 'bin dev etc grants home lib lib32 lib64 libx32 opt proc run sbin sys tmp usr var workspace'.split(
      ' ',
    )
    expect((root ?? []).filter((name) => !allowed.includes(name))).toEqual([])
    const declared =
      /^(alternatives|fonts|group|hostname|hosts|ld\.so\.cache|nsswitch\.conf|os-release|passwd|python3.*|resolv\.conf|ssl|mtab|localtime)$/
    expect((etc ?? []).filter((name) => !declared.test(name))).toEqual([])
    expect((readable ?? []).filter((path) => path !== '/home' && path !== '/var/lib')).toEqual([])
    expect([home, grants]).toEqual([['user'], []])
  })

  it('writes to its own places and nowhere else', async () => {
    const seen = await python(`
import json, os
def writable(path):
    try:
        name = path + '/.probe'
        open(name, 'w').close(); os.unlink(name); return True
    except OSError: return False
places = ['/', '/usr', '/usr/bin', '/etc', '/opt', '/opt/airlock', '/run', '/run/guest', '/run/airlock', '/proc', '/dev', '/home', '/workspace', '/home/user', '/tmp', '/dev/shm']
print(json.dumps([p for p in places if writable(p)]))
`)
    expect(JSON.parse(seen)).toEqual(['/workspace', '/home/user', '/tmp', '/dev/shm'])
  })

  it('has a minimal /dev and cannot make a device', async () => {
    const seen = await python(`
import os, stat
print(' '.join(sorted(n for n in os.listdir('/dev') if stat.S_ISCHR(os.lstat('/dev/' + n).st_mode) or stat.S_ISBLK(os.lstat('/dev/' + n).st_mode))))
try:
    os.mknod('/tmp/kmsg', stat.S_IFCHR | 0o666, os.makedev(1, 11)); open('/tmp/kmsg').read(1); print('made')
except OSError: print('refused')
`)
    const [devices, made] = seen.split('\n')
    const allowed = new Set(['console', 'full', 'null', 'ptmx', 'random', 'tty', 'urandom', 'zero'])
    expect((devices ?? '').split(' ').filter((name) => !allowed.has(name))).toEqual([])
    expect(made).toBe('refused')
  })

  it('cannot leave its group or raise its limits', async () => {
    const seen = await python(`
import os
tried = 0
for base, dirs, files in os.walk('/sys/fs/cgroup'):
    for name in files:
        try: open(os.path.join(base, name), 'w'); tried += 1
        except OSError: pass
print(tried, os.access('/run/guest/groups', os.X_OK))
`)
    expect(seen).toBe('0 False')
  })
})

describe('ordinary programs', () => {
  it.each([
    [
      'threads and processes in python',
      'python3',
      [
        '-c',
        `
import concurrent.futures as f, multiprocessing as m
print(sum(f.ThreadPoolExecutor(4).map(lambda x: x * x, range(10))))
with m.Pool(2) as pool: print(sum(pool.map(abs, range(-5, 0))))
`,
      ],
      '285\n15\n',
    ],
    [
      'a shell with a pipe and job control',
      'bash',
      ['-c', 'set -m; sleep 0.01 & fg >/dev/null; seq 3 | tac | tr "\\n" " "'],
      '3 2 1 ',
    ],
    ['tar through a pipe', 'sh', ['-c', 'mkdir -p t && echo x > t/a && tar c t | tar t'], 't/\nt/a\n'],
    [
      'our own node with a worker',
      '/opt/airlock/bin/node',
      [
        '-e',
        `
const { Worker } = require('node:worker_threads')
new Worker('require("node:worker_threads").parentPort.postMessage(6 * 7)', { eval: true }).on('message', console.log)
`,
      ],
      '42\n',
    ],
    [
      'git',
      'sh',
      [
        '-c',
        'command -v git >/dev/null || { echo ok; exit; }; git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m && echo ok',
      ],
      'ok\n',
    ],
  ])('run: %s', async (_what, program, args, expected) => {
    const result = await sandbox.run([program, ...args], { timeoutMs: 60_000 })
    expect({ stdout: result.stdout, stderr: result.stderr, exitCode: result.exitCode }).toEqual({
      stdout: expected,
      stderr: '',
      exitCode: 0,
    })
  })
})
