import { AirlockError, type Failpoint, type FailpointName } from '@airlock/contract'
import { sleep, waitFor } from '@airlock/std'
import { existsSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type StartedSandbox, STRICT_DIFFERENCES } from './backend.ts'
import { describeLimits } from './fixtures/conformance-limits.ts'
import { describeSampling } from './fixtures/conformance-sampling.ts'
import { describeStrain } from './fixtures/conformance-strain.ts'
import { ConformanceContext, soon, type BackendHost } from './fixtures/conformance-context.ts'
import { Probe } from './fixtures/probe.ts'

export type { BackendHost } from './fixtures/conformance-context.ts'

/** What isolates the first process inside, and what the kernel of gVisor. */
const FIRST_PROCESS = {
  namespaces: ['user', 'pid', 'net', 'ipc', 'uts', 'mount', 'cgroup'],
  capabilities: ['KILL', 'SETGID', 'SETUID', 'SETPCAP'],
  uidRange: { first: expect.any(Number), count: 65_536 },
} as const
const SENTRY = {
  namespaces: ['user', 'net', 'ipc', 'uts', 'mount', 'cgroup'],
  capabilities: expect.any(Array),
  uidRange: { first: expect.any(Number), count: 1 },
} as const
const NOBODY = 65_534
const TEST_LIMIT_MS = 120_000

/** The contract of the port, tried from inside a real sandbox. Every backend runs it; none may be replaced by a fake. */
export function describeBackend(name: string, makeHost: () => BackendHost): void {
  describe(`${name} keeps the contract of the port`, { timeout: TEST_LIMIT_MS }, () => {
    const context = new ConformanceContext(makeHost)
    afterEach(async () => await context.endProbes())
    afterAll(() => context.host.close())
    describe('the wall', () => describeWall(context))
    describe('the view from inside', () => describeView(context))
    describe('limits', () => describeLimits(context))
    describe('samples', () => describeSampling(context))
    describe('strain', () => describeStrain(context))
    describe('life', () => describeLife(context))
    describe('failure', () => describeFailure(context))
  })
}

interface Shared {
  readonly probe: Probe
  readonly running: Omit<StartedSandbox, 'image'>
}

/** One sandbox for tests that only look. */
function shared(context: ConformanceContext): () => Shared {
  let made: Shared | undefined
  beforeAll(async () => {
    const probe = new Probe(context.host.runtimeDir, {}, context.host.tier)
    const running = await probe.start(await context.backend())
    await probe.hello()
    made = { probe, running }
  }, TEST_LIMIT_MS)
  afterAll(async () => {
    if (made) await context.end(await context.backend(), made.probe)
  })
  return () => {
    if (!made) throw new AirlockError('internal', 'The shared sandbox did not start.')
    return made
  }
}

/** System calls by number: x86-64 and arm64 differ. */
const DENIED_CALLS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  x64: {
    ptrace: 101,
    syslog: 103,
    pivot_root: 155,
    acct: 163,
    mount: 165,
    reboot: 169,
    init_module: 175,
    quotactl: 179,
    settimeofday: 164,
    clock_settime: 227,
    kexec_load: 246,
    add_key: 248,
    keyctl: 250,
    unshare: 272,
    perf_event_open: 298,
    fanotify_init: 300,
    name_to_handle_at: 303,
    open_by_handle_at: 304,
    setns: 308,
    process_vm_readv: 310,
    kcmp: 312,
    bpf: 321,
    userfaultfd: 323,
    io_uring_setup: 425,
    open_tree: 428,
    mount_setattr: 442,
  },
  arm64: {
    ptrace: 117,
    mount: 40,
    unshare: 97,
    setns: 268,
    bpf: 280,
    userfaultfd: 282,
    io_uring_setup: 425,
  },
}

const CTYPES = `
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    result = libc.syscall(*[ctypes.c_long(a) for a in args])
    return 'ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(work):
    try:
        work()
        return 'ok'
    except OSError as error:
        return errno.errorcode[error.errno]
`

function describeWall(context: ConformanceContext): void {
  const inside = shared(context)
  const answers = async (program: string): Promise<readonly string[]> => {
    const { stdout, stderr } = await inside().probe.python(CTYPES + program)
    return (stdout + stderr).trim().split('\n')
  }

  it('says truthfully what isolates a sandbox', async () => {
    const { capabilities, name } = await context.backend()
    const { isolation } = inside().running
    expect(isolation).toEqual({
      backend: name,
      runtime: expect.any(String),
      tier: context.host.tier,
      network: capabilities.network,
      seccomp: 'allowlist',
      noNewPrivileges: true,
      cgroup: capabilities.cgroup,
      limits: capabilities.limits,
      root: 'read-only',
      unmasked: [],
      mountFaults: [],
      probe: null,
      ...(context.isStrict ? SENTRY : FIRST_PROCESS),
    })
  })

  it('declares in what the strict tier differs, where it has one', async () => {
    const { tiers, strictDiffers } = (await context.backend()).capabilities
    expect(strictDiffers).toEqual(tiers.includes('strict') ? STRICT_DIFFERENCES : [])
  })

  it('has every namespace that it declares, and none of them is the host own', async () => {
    const kinds = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts']
    const links = kinds.map((kind) => `/proc/self/ns/${kind}`)
    const { stdout } = await inside().probe.user('readlink', ...links)
    const theirs = stdout.trim().split('\n')
    const mine = new Set(links.map((link) => readlinkSync(link)))
    // The kernel of gVisor shows a few of them.
    expect(theirs.length).toBeGreaterThanOrEqual(context.isStrict ? 3 : kinds.length)
    expect(theirs.filter((link) => mine.has(link))).toEqual([])
  })

  it('gives user code no capability, no new privileges and a filter', async () => {
    const { stdout } = await inside().probe.user('grep', '-E', '^(Cap|NoNewPrivs|Seccomp:)', '/proc/self/status')
    expect(facts(stdout)).toEqual({
      CapInh: '0000000000000000',
      CapPrm: '0000000000000000',
      CapEff: '0000000000000000',
      CapBnd: '0000000000000000',
      Seccomp: '2',
      ...(context.isStrict ? {} : { CapAmb: '0000000000000000', NoNewPrivs: '1' }),
    })
    const PR_GET_NO_NEW_PRIVS = 39
    expect(await answers(`print(libc.prctl(${PR_GET_NO_NEW_PRIVS}, 0, 0, 0, 0))`)).toEqual(['1'])
  })

  it('gives the guest SETUID, SETGID, SETPCAP and KILL and nothing else', async () => {
    const { stdout } = await inside().probe.guest('grep', '-E', '^(Cap|NoNewPrivs|Seccomp:)', '/proc/self/status')
    expect(facts(stdout)).toEqual({
      CapInh: '0000000000000000',
      CapPrm: '00000000000001e0',
      CapEff: '00000000000001e0',
      CapBnd: '00000000000001e0',
      Seccomp: '2',
      ...(context.isStrict ? {} : { CapAmb: '0000000000000000', NoNewPrivs: '1' }),
    })
  })

  it('maps inside uids to a range of the host that nobody else has', async () => {
    const { first, count } = inside().running.isolation.uidRange
    const { stdout } = await inside().probe.user('cat', '/proc/self/uid_map', '/proc/self/gid_map')
    const map = stdout.trim().split(/\s+/u).map(Number)
    // Inside gVisor root is not mapped to anybody: its kernel is nobody to the host, and files have the range.
    if (context.isStrict) return expect([first, map]).toEqual([NOBODY, [0, 0, 0xff_ff_ff_ff, 0, 0, 0xff_ff_ff_ff]])
    expect(map).toEqual([0, first, count, 0, first, count])
    expect(first).toBeGreaterThan(65_536)
  })

  it('refuses every system call that is not on the list', async () => {
    const calls = DENIED_CALLS[process.arch] ?? {}
    const lines = await answers(
      Object.values(calls)
        .map((number) => `print(call(${number}, 0, 0, 0, 0, 0))`)
        .join('\n'),
    )
    expect(Object.fromEntries(Object.keys(calls).map((call, at) => [call, lines[at]]))).toEqual(
      Object.fromEntries(Object.keys(calls).map((call) => [call, 'EPERM'])),
    )
  })

  it('refuses system calls that nobody has thought of yet', async () => {
    // A runtime may say ENOSYS above the last number that it knows.
    expect(await answers('print(call(999, 0))')).toEqual([expect.stringMatching(/^(?:EPERM|ENOSYS)$/u)])
  })

  it('answers as absent what a filter cannot look into', async () => {
    const [clone3, openat2] = [435, 437]
    const expected = context.isStrict ? [expect.stringMatching(/^(?:ENOSYS|EINVAL)$/u), 'EPERM'] : ['ENOSYS', 'ENOSYS']
    expect(await answers(`print(call(${clone3}, 0, 0)); print(call(${openat2}, 0, 0, 0, 0))`)).toEqual(expected)
  })

  it('lets nobody make a namespace', async () => {
    const clone = process.arch === 'x64' ? 56 : 220
    const flags = [0x2_00_00, 0x2_00_00_00, 0x4_00_00_00, 0x8_00_00_00, 0x10_00_00_00, 0x20_00_00_00, 0x40_00_00_00]
    const program = flags.map((flag) => `print(call(${clone}, ${flag + 17}, 0, 0, 0, 0))`).join('\n')
    expect(await answers(program)).toEqual(flags.map(() => 'EPERM'))
  })

  it('has sockets of unix, IPv4, IPv6 and routing netlink only', async () => {
    const families = [
      [1, 1, 0],
      [2, 1, 0],
      [10, 1, 0],
      [16, 3, 0],
      [16, 3, 15],
      [17, 3, 0],
      [38, 5, 0],
      [40, 1, 0],
    ]
    const program = families.map((args) => `print(attempt(lambda: socket.socket(${args.join(',')})))`).join('\n')
    expect(await answers(program)).toEqual(['ok', 'ok', 'ok', 'ok', 'EPERM', 'EPERM', 'EPERM', 'EPERM'])
  })

  it('never lets anybody type into a terminal, also not by a number with high bits', async () => {
    const ioctl = process.arch === 'x64' ? 16 : 29
    const program = [0x54_12, 0x54_1c, 0x1_00_00_54_12, 0x54_1d, 0x54_23, 0x54_01, 0x54_13]
      .map((number) => `print(call(${ioctl}, os.open('/dev/null', 0), ${number}, 0))`)
      .join('\n')
    expect(await answers(program)).toEqual([...Array.from({ length: 5 }, () => 'EPERM'), 'ENOTTY', 'ENOTTY'])
  })

  it('never lets a set-uid or set-gid bit be set, by whatever call', async () => {
    const lines = await answers(`
os.chdir('/workspace')
fd = os.open('plain', os.O_CREAT | os.O_RDWR, 0o644)
for bit in (0o4000, 0o2000):
    print(attempt(lambda: os.chmod('plain', bit | 0o755)))
    print(attempt(lambda: os.fchmod(fd, bit | 0o755)))
    print(attempt(lambda: os.chmod('plain', bit | 0o755, dir_fd=os.open('.', 0))))
    print(attempt(lambda: os.open('new', os.O_CREAT | os.O_WRONLY, bit | 0o755)))
    print(attempt(lambda: os.mknod('node', bit | 0o100755)))
print(attempt(lambda: os.chmod('plain', 0o755)))
print(attempt(lambda: os.mkdir('sticky', 0o1777)))
print(oct(os.stat('plain').st_mode), sorted(os.listdir('.')))
`)
    const denied = Array.from({ length: 10 }, () => 'EPERM')
    expect(lines).toEqual([...denied, 'ok', 'ok', "0o100755 ['plain', 'sticky']"])
  })

  it('keeps user code from changing how the guest is scheduled, or declares that it does not matter', async () => {
    const refused = context.isStrict ? 'ok' : 'EPERM'
    const seen = await answers(`
print(attempt(lambda: os.setpriority(os.PRIO_PROCESS, 1, 5)))
print(attempt(lambda: os.sched_setaffinity(1, os.sched_getaffinity(0))))`)
    expect(seen).toEqual([refused, refused])
  })

  it('keeps user code from signalling, reading or entering what is the guest own', async () => {
    const lines = await answers(`
print(attempt(lambda: os.kill(1, 0)), attempt(lambda: os.kill(os.getppid(), 0)))
for path in ('environ', 'mem', 'fd', 'root', 'cwd'):
    print(attempt(lambda: os.listdir(f'/proc/1/{path}') if path in ('fd', 'root', 'cwd') else open(f'/proc/1/{path}')))
print(attempt(lambda: os.listdir('/run/guest')))
print(attempt(lambda: os.open('/run/guest/control/guest.sock', 0)))
print(attempt(lambda: open('/run/mine', 'w')), attempt(lambda: open('/dev/mine', 'w')))
`)
    const [environ, fd] = context.isStrict ? ['ok', 'ok'] : ['EACCES', 'EACCES']
    const denied = [environ, 'EACCES', fd, 'EACCES', 'EACCES', 'EACCES', 'EACCES']
    expect(lines).toEqual(['EPERM EPERM', ...denied, 'EACCES EACCES'])
  })

  it('lets user code open no descriptor of the guest but /dev/null, and find nothing secret in its environment', async () => {
    const lines = await answers(`
opened, names = [], set()
for pid in [p for p in os.listdir('/proc') if p.isdigit() and os.stat('/proc/' + p).st_uid == 0]:
    try:
        names |= {entry.split('=')[0] for entry in open(f'/proc/{pid}/environ').read().split(chr(0)) if entry}
        for fd in os.listdir(f'/proc/{pid}/fd'):
            if attempt(lambda: os.open(f'/proc/{pid}/fd/{fd}', os.O_RDWR | os.O_NONBLOCK)) == 'ok':
                opened.append(os.path.basename(os.readlink(f'/proc/{pid}/fd/{fd}')))
    except PermissionError:
        pass
print(sorted({name for name in opened if name != 'null' and not name.startswith('host:')}), sorted(names))
`)
    expect(lines).toEqual([context.isStrict ? "[] ['HOME', 'LANG', 'PATH', 'PWD']" : '[] []'])
  })

  it('keeps user code in its groups and under its limits', async () => {
    const groups = ['pids', 'memory', 'cpu', 'freezer', 'user'].map((name) => `/run/guest/groups/${name}`)
    const files = groups.flatMap((dir) => ['tasks', 'cgroup.procs', 'pids.max'].map((file) => `${dir}/${file}`))
    const script = 'for f; do (echo 0 >$f) 2>/dev/null && echo wrote $f; done; true'
    const { stdout } = await inside().probe.user('sh', '-c', script, 'sh', ...files, '/sys/fs/cgroup/cgroup.procs')
    expect(stdout).toBe('')
  })

  it('does not even let the guest raise a limit or leave its groups', async () => {
    const { stdout } = await inside().probe.guest(
      'sh',
      '-c',
      `cd /run/guest/groups; for f in */memory.limit_in_bytes */memory.max */cpu.cfs_quota_us */cpu.max */pids.max */freezer.state
       do [ -e $f ] || continue; (echo 9999999999 >$f) 2>/dev/null && echo raised $f; done; true`,
    )
    expect(stdout).toBe('')
  })

  it('inherits no descriptor of the host', async () => {
    const lines = await answers(`print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))`)
    expect(lines).toEqual(['[0, 1, 2, 3]'])
    const guest = await inside().probe.guest('sh', '-c', 'readlink /proc/1/fd/*')
    const descriptor = expect.stringMatching(context.isStrict ? /^host:\[\d+\]$/u : /^\/dev\/null$/u)
    expect(guest.stdout.trim().split('\n')).toEqual([descriptor, descriptor, descriptor])
  })
}

function describeView(context: ConformanceContext): void {
  const inside = shared(context)

  it('sees its own processes only', async () => {
    const { stdout } = await inside().probe.user('sh', '-c', 'cat /proc/[0-9]*/comm | sort -u')
    const names = stdout.trim().split('\n')
    expect(names.filter((name) => !/^(?:sh|node|MainThread|cat|sort)$/u.test(name))).toEqual([])
    expect(names).toContain('sh')
  })

  it('reaps what double forks leave behind', async () => {
    await inside().probe.user('sh', '-c', 'for i in $(seq 30); do (sh -c "true & true" &) ; done; wait')
    const zombies = async () => {
      const { stdout } = await inside().probe.user(
        'sh',
        '-c',
        'grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null; true',
      )
      return stdout === '' ? 'none' : undefined
    }
    await waitFor(zombies, { signal: AbortSignal.timeout(10_000), everyMs: 20 })
  })

  it('has no network device but loopback, which works, and no way out', async () => {
    const { stdout } = await inside().probe.python(`
import socket, errno
print([name for _, name in socket.if_nameindex()])
server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname()); print('loopback')
for address in ('192.0.2.1', '8.8.8.8'):
    try:
        socket.create_connection((address, 53), timeout=5)
    except OSError as error:
        print(errno.errorcode[error.errno])
try:
    socket.getaddrinfo('example.com', 80)
except socket.gaierror:
    print('no names')
`)
    const unreachable = context.isStrict ? 'EHOSTUNREACH' : 'ENETUNREACH'
    expect(stdout.trim().split('\n')).toEqual(["['lo']", 'loopback', unreachable, unreachable, 'no names'])
  })

  it('shows no file of the host outside what is bound', async () => {
    const secrets = [
      '/tmp/airlock-conformance-secret',
      '/root/airlock-conformance-secret',
      '/var/tmp/airlock-conformance',
    ]
    for (const path of secrets) writeFileSync(path, 'secret', { mode: 0o644 })
    try {
      const places = [...secrets, '/etc/shadow', '/etc/machine-id', '/boot', '/run/airlock-uid-ranges']
      const { stdout } = await inside().probe.python(
        `import os; print([at for at in ${JSON.stringify([...places, '/sys'])} if os.path.lexists(at)])`,
      )
      expect(stdout).toBe(context.isStrict ? "['/sys']\n" : '[]\n')
    } finally {
      for (const path of secrets) rmSync(path, { force: true })
    }
  })

  it('has a root of few directories, all read-only but the declared ones', async () => {
    const { stdout } = await inside().probe.user(
      'sh',
      '-c',
      'cd /; ls; for d in / /usr /etc /opt/airlock /home; do touch $d/x 2>/dev/null && echo $d; done; true',
    )
    const merged = ['bin', 'lib', 'lib32', 'lib64', 'libx32', 'sbin'].filter((dir) => existsSync(`/${dir}`))
    const own = ['dev', 'etc', 'grants', 'home', 'opt', 'proc', 'run', 'tmp', 'usr', 'var', 'workspace']
    if (context.isStrict) own.push('sys')
    expect(stdout.trim().split('\n').sort()).toEqual([...merged, ...own].sort())
  })

  it('mounts everything writable without set-uid and devices', async () => {
    const { stdout } = await inside().probe.user('cat', '/proc/self/mounts')
    const writable = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, at, type, options]) => options?.startsWith('rw') && type !== 'proc' && !at?.startsWith('/run/guest/'))
      // Devices, and what is hidden behind one.
      .filter(([, at]) => !/^\/dev\/(?:null|zero|full|random|urandom|tty)$|^\/proc\/|^\/sys$/u.test(at ?? ''))
    expect(writable.map(([, at]) => at).toSorted(byText)).toEqual(
      ['/dev', '/dev/pts', '/dev/shm', '/home/user', '/run', '/run/guest', '/run/steps', '/tmp', '/workspace'].sort(),
    )
    // Its own kernel shows neither: there, no bit is heeded and no device can be made.
    if (context.isStrict) return
    expect(writable.filter(([, , , options]) => !options?.split(',').includes('nosuid'))).toEqual([])
    const needNodev = writable.filter(([, at]) => at !== '/dev' && at !== '/dev/pts')
    expect(needNodev.filter(([, , , options]) => !options?.split(',').includes('nodev'))).toEqual([])
  })

  it('lets user code write its workspace, home and /tmp', async () => {
    const { stdout } = await inside().probe.user(
      'sh',
      '-c',
      'for d in /workspace ~ /tmp /dev/shm; do echo $d >$d/f; cat $d/f; done; id -un',
    )
    expect(stdout.trim().split('\n')).toEqual(['/workspace', '/home/user', '/tmp', '/dev/shm', 'user'])
  })

  it('has terminals of its own', async () => {
    const { stdout } = await inside().probe.python('import os, pty; print(os.ttyname(pty.openpty()[1]))')
    expect(stdout).toBe('/dev/pts/0\n')
  })

  it('gives user code the allowlisted environment and nothing else', async () => {
    const { stdout } = await inside().probe.user('env')
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0])
    expect(names.filter((name) => name !== 'PWD').toSorted(byText)).toEqual([
      'GOMAXPROCS',
      'HOME',
      'LANG',
      'LOGNAME',
      'NPM_CONFIG_AUDIT',
      'NPM_CONFIG_FETCH_RETRIES',
      'NPM_CONFIG_FUND',
      'NPM_CONFIG_PREFIX',
      'NPM_CONFIG_UPDATE_NOTIFIER',
      'OMP_NUM_THREADS',
      'PATH',
      'PIP_BREAK_SYSTEM_PACKAGES',
      'PIP_DISABLE_PIP_VERSION_CHECK',
      'PIP_NO_INPUT',
      'PIP_RETRIES',
      'PYTHONUSERBASE',
      'PYTHON_CPU_COUNT',
      'RAYON_NUM_THREADS',
      'SHELL',
      'TMPDIR',
      'USER',
    ])
  })

  const programs: Readonly<Record<string, string>> = {
    '/bin/bash': "/bin/bash -c 'echo $((6 * 7))'",
    '/usr/bin/python3': 'python3 -c "import json, ssl, sqlite3, subprocess, threading; print(6 * 7)"',
    '/opt/airlock/bin/node': 'node -e "console.log(6 * 7)"',
    '/usr/bin/git':
      'git init -q repo && cd repo && echo 42 >f && git add f && git -c user.name=a -c user.email=a@b commit -qm x && git show HEAD:f',
    '/usr/bin/gcc': 'echo "int puts(const char*); int main(){puts(\\"42\\");}" >m.c && gcc m.c -o m && ./m',
    '/usr/bin/tar': 'echo 42 >t && tar cf t.tar t && rm t && tar xf t.tar && cat t',
  }
  for (const [path, script] of Object.entries(programs))
    it(`runs ${path} under the filter`, presence(path), async () => {
      const { stdout, stderr } = await inside().probe.user('sh', '-c', `cd ~ && ${script}`)
      expect(stdout + stderr).toBe('42\n')
    })
}

/** Programs of the host are tried where it has them; those in /opt are ours. */
function presence(path: string): { skip?: true; meta?: { skipReason: string } } {
  return path.startsWith('/opt') || existsSync(path) ? {} : { skip: true, meta: { skipReason: `needs ${path}` } }
}

function describeLife(context: ConformanceContext): void {
  it('tells from outside what a sandbox uses', async () => {
    const probe = await context.started()
    const stats = await (await context.backend()).stats(probe.id)
    expect(stats).toEqual({
      processes: context.isStrict ? expect.any(Number) : 2,
      memoryBytes: expect.any(Number),
      memoryPeakBytes: expect.any(Number),
      cpuMs: expect.any(Number),
      oomKills: 0,
    })
    expect(await (await context.backend()).stats('sbx_unknown')).toBeUndefined()
  })

  it('stops every process where it stands, and lets it go on', async () => {
    const probe = await context.started()
    const backend = await context.backend()
    const idle = (await backend.stats(probe.id))?.cpuMs ?? 0
    await probe.begin('sh', '-c', 'while :; do :; done')
    await waitFor(async () => (((await backend.stats(probe.id))?.cpuMs ?? 0) > idle + 300 ? true : undefined), soon())
    await backend.freeze(probe.id)
    const before = await backend.stats(probe.id)
    await sleep(50)
    expect((await backend.stats(probe.id))?.cpuMs).toBe(before?.cpuMs)
    const answer = probe.user('echo', 'thawed')
    await backend.thaw(probe.id)
    expect((await answer).stdout).toBe('thawed\n')
  })

  it('keeps what is frozen: its memory is counted, it is found, and to freeze and thaw it again does no harm', async () => {
    const probe = await context.started()
    const backend = await context.backend()
    const before = await backend.adopt(probe.id)
    expect(await backend.isFrozen(probe.id)).toBe(false)
    await backend.freeze(probe.id)
    await backend.freeze(probe.id)
    expect(await backend.isFrozen(probe.id)).toBe(true)
    const frozen = await backend.stats(probe.id)
    expect(frozen?.memoryBytes ?? 0).toBeGreaterThan(0)
    expect(frozen?.processes ?? 0).toBeGreaterThan(0)
    expect(await backend.adopt(probe.id)).toEqual(before)
    await backend.thaw(probe.id)
    await backend.thaw(probe.id)
    expect(await backend.isFrozen(probe.id)).toBe(false)
    expect((await probe.user('echo', 'thawed')).stdout).toBe('thawed\n')
  })

  it('has nothing to freeze where there is no sandbox', async () => {
    const backend = await context.backend()
    await backend.freeze('sbx_unknown')
    await backend.thaw('sbx_unknown')
    expect(await backend.isFrozen('sbx_unknown')).toBe(false)
  })

  it('leaves nothing when it stops, and may be asked again', async () => {
    const probe = await context.started()
    const backend = await context.backend()
    await probe.begin('sh', '-c', 'setsid sh -c "while :; do sleep 0.01 & done"')
    await backend.stop(probe.id)
    expect(context.host.leftovers(probe.id)).toEqual([])
    await Promise.all([backend.stop(probe.id), backend.stop('sbx_unknown')])
  })

  it('stops a frozen sandbox', async () => {
    const probe = await context.started()
    const backend = await context.backend()
    await backend.freeze(probe.id)
    await backend.stop(probe.id)
    expect(context.host.leftovers(probe.id)).toEqual([])
  })

  it('stops a sandbox while it starts', async () => {
    const backend = await context.backend()
    const probe = context.probe()
    const start = probe.start(backend).then(
      () => 'started',
      () => 'refused',
    )
    await sleep(10)
    await backend.stop(probe.id)
    expect(['started', 'refused']).toContain(await start)
    expect(context.host.leftovers(probe.id)).toEqual([])
  })

  it('stops by its own failpoints, in their order', async () => {
    const seen: FailpointName[] = []
    const backend = await context.host.make(async (name) => void seen.push(name))
    const probe = context.probe()
    await probe.start(backend)
    await backend.stop(probe.id)
    expect(seen).toEqual([
      'create.groups-made',
      'create.disk-made',
      'create.launched',
      'terminate.frozen',
      'terminate.killed',
      'terminate.unmounted',
    ])
  })

  it('finds a living sandbox again after a restart', async () => {
    const probe = context.probe()
    const { id, init } = await probe.start(await context.backend())
    await probe.hello()
    const next = await context.host.make()
    expect(await next.adopt(probe.id)).toEqual({ id, init })
    expect((await probe.user('echo', 'alive')).stdout).toBe('alive\n')
    await next.stop(probe.id)
    expect(context.host.leftovers(probe.id)).toEqual([])
    expect(await next.adopt(probe.id)).toBeUndefined()
  })

  it('does not adopt a sandbox whose first process is gone', async () => {
    const probe = context.probe()
    const backend = await context.backend()
    const { init } = await probe.start(backend)
    process.kill(init.pid, 'SIGKILL')
    await waitFor(async () => ((await backend.adopt(probe.id)) ? undefined : true), soon())
    await backend.stop(probe.id)
    expect(context.host.leftovers(probe.id)).toEqual([])
  })

  it('starts several at once, each with a range of its own', async () => {
    const backend = await context.backend()
    const probes = [context.probe(), context.probe(), context.probe(), context.probe()]
    const running = await Promise.all(probes.map(async (probe) => await probe.start(backend)))
    if (!context.isStrict) expect(new Set(running.map(({ isolation }) => isolation.uidRange.first)).size).toBe(4)
    const answers = await Promise.all(probes.map(async (probe) => await probe.user('echo', probe.id)))
    expect(answers.map(({ stdout }) => stdout.trim())).toEqual(probes.map(({ id }) => id))
  })

  it('keeps one sandbox out of another sandbox files', async () => {
    const [one, other] = await Promise.all([context.started(), context.started()])
    await one.user('sh', '-c', 'echo secret >/workspace/secret; echo secret >/tmp/secret')
    const listed = await other.python('import os; print(os.listdir("/workspace"), os.listdir("/tmp"))')
    expect(listed.stdout).toBe('[] []\n')
  })
}

function describeFailure(context: ConformanceContext): void {
  it('refuses a tier that it does not have, and starts nothing', async () => {
    const backend = await context.host.makeStandardOnly()
    const probe = context.probe()
    const strict = backend.start({ ...probe.spec, tier: 'strict' }, AbortSignal.timeout(5000))
    await expect(strict).rejects.toMatchObject({ code: 'isolation_unavailable' })
    expect(context.host.leftovers(probe.id)).toEqual([])
  })

  it('refuses to start what was started before, and leaves that alone', async () => {
    const probe = await context.started()
    const again = (await context.backend()).start(probe.spec, AbortSignal.timeout(5000))
    await expect(again).rejects.toMatchObject({ code: 'internal' })
    expect((await probe.user('echo', 'alive')).stdout).toBe('alive\n')
  })

  it('refuses an id that is no plain name', async () => {
    const backend = await context.backend()
    await expect(backend.stop('../x')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('leaves nothing of a start that was aborted', async () => {
    const abort = new AbortController()
    const backend = await context.host.make(async (name) => {
      if (name === 'create.disk-made') abort.abort(new AirlockError('timeout'))
    })
    const probe = context.probe()
    await expect(backend.start(probe.spec, abort.signal)).rejects.toMatchObject({ code: 'timeout' })
    expect(context.host.leftovers(probe.id)).toEqual([])
  })

  it('leaves nothing of a start that failed', async () => {
    const backend = await context.backend()
    const probe = context.probe()
    const start = backend.start({ ...probe.spec, controlDir: '/nonexistent' }, AbortSignal.timeout(5000))
    await expect(start).rejects.toMatchObject({ code: 'start_failed' })
    expect(context.host.leftovers(probe.id)).toEqual([])
  })

  for (const point of ['create.groups-made', 'create.disk-made', 'create.launched'] as const)
    it(`reaps a start that was cut off at ${point}`, async () => {
      const probe = context.probe()
      const { failpoint, reached } = cutOffAt(point)
      const backend = await context.host.make(failpoint)
      void probe.start(backend)
      await reached
      await expectReaped(context, probe)
    })

  for (const point of ['terminate.frozen', 'terminate.killed', 'terminate.unmounted'] as const)
    it(`reaps a stop that was cut off at ${point}`, async () => {
      const probe = await context.started()
      const { failpoint, reached } = cutOffAt(point)
      const backend = await context.host.make(failpoint)
      void backend.stop(probe.id)
      await reached
      await expectReaped(context, probe)
    })

  it('reaps what nobody keeps and nothing else', async () => {
    const [kept, other] = await Promise.all([context.started(), context.started()])
    const next = await context.host.make()
    expect(await next.reap(new Set([kept.id]))).toEqual([other.id])
    expect((await kept.user('echo', 'alive')).stdout).toBe('alive\n')
    expect(context.host.leftovers(other.id)).toEqual([])
  })
}

/** A failpoint that never returns: what comes after it does not happen, as after kill -9. */
function cutOffAt(point: FailpointName): { failpoint: Failpoint; reached: Promise<void> } {
  const reached = Promise.withResolvers<void>()
  const failpoint = async (name: FailpointName) => {
    if (name !== point) return
    reached.resolve()
    await new Promise<never>(() => {})
  }
  return { failpoint, reached: reached.promise }
}

async function expectReaped(context: ConformanceContext, probe: Probe): Promise<void> {
  const next = await context.host.make()
  expect(context.host.leftovers(probe.id)).not.toEqual([])
  expect(await next.reap(new Set())).toContain(probe.id)
  expect(context.host.leftovers(probe.id)).toEqual([])
}

/** Names as `ls` and we sort them. */
function byText(a = '', b = ''): number {
  return a < b ? -1 : Number(a > b)
}

function facts(status: string): Readonly<Record<string, string>> {
  const lines = status
    .trim()
    .split('\n')
    .map((line) => line.split(/:\s+/u))
  return Object.fromEntries(lines.map(([key = '', value = '']) => [key, value]))
}
