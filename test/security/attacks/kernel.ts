import { syscall, type Attack } from './attack.ts'

const EPERM = 'EPERM: the filter does not know the call'

/** One call that the filter must refuse; without the filter the kernel answers otherwise. */
function filtered(id: string, attack: string, call: readonly [number: number, args: string]): Attack {
  return { id, attack, expected: EPERM, program: syscall(...call), control: 'no-seccomp' }
}

/** One that the kernel refuses also by itself: what is like it and allowed shows that the probe works. */
function allowedBeside(id: string, attack: string, program: string): Attack {
  return { id, attack, expected: 'refused; what is allowed beside it works', program, control: 'itself' }
}

/** Calls and their arguments: what the filter and the lack of capabilities stop. */
export const KERNEL_ATTACKS: readonly Attack[] = [
  filtered('P04-ptrace', 'ptrace(TRACEME)', [101, '0, 0, 0, 0']),
  filtered('P04-vm-read', 'process_vm_readv of itself, which shows the call', [310, 'os.getpid(), 0, 0, 0, 0, 0']),
  filtered('P04-pidfd', 'pidfd_getfd: take a descriptor of another process', [438, '-1, 0, 0']),
  filtered('P05-unshare', 'unshare(CLONE_NEWUSER): namespaces inside namespaces', [272, '0x10000000']),
  {
    id: 'P05-clone',
    attack: 'clone(CLONE_NEWUSER) by flags',
    expected: 'EPERM: no flag of a namespace passes',
    program: `
result, error = call(56, 0x10000000 | 17, 0, 0, 0, 0)
if result == 0: os._exit(0)
reached() if result > 0 else refused(name(error))
`,
    control: 'no-seccomp',
  },
  {
    id: 'P05-clone3',
    attack: 'clone3(CLONE_NEWUSER): flags in memory, where no filter looks',
    expected: 'ENOSYS: programs fall back to clone',
    program: `
result, error = call(435, struct.pack('8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)
if result == 0: os._exit(0)
reached() if result > 0 else refused(name(error))
`,
    control: 'no-seccomp',
    // gVisor leaves it to its own kernel, where such a namespace is one of that kernel.
    tiers: ['standard'],
  },
  {
    id: 'P05-mount',
    attack:
      'a user and a mount namespace of its own, then a mount in it, as escapes by release agents and overlays begin',
    expected: 'EPERM at the first step',
    program: `
result, error = call(272, 0x10000000 | 0x20000)
if result != 0:
    refused(name(error))
else:
    open('/proc/self/setgroups', 'w').write('deny')
    open('/proc/self/uid_map', 'w').write('0 1000 1')
    mounted = libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)
    reached('mounted') if mounted == 0 else reached('unshared')
`,
    control: 'no-seccomp',
  },
  filtered('P05-setns', 'setns: enter another namespace', [308, "os.open('/proc/self/ns/user', 0), 0"]),
  allowedBeside(
    'P05-umount',
    'umount and remount of /proc, /usr and /workspace, chroot, pivot_root',
    `
ways = {}
for path in (b'/proc', b'/usr', b'/workspace', b'/dev/shm', b'/etc/passwd'):
    ways['umount ' + path.decode()] = (('ok' if libc.umount2(path, 2) == 0 else name(ctypes.get_errno())), None)
    ways['remount ' + path.decode()] = (('ok' if libc.mount(None, path, None, 32 | 4096, None) == 0 else name(ctypes.get_errno())), None)
ways['chroot'] = (('ok' if libc.chroot(b'/workspace') == 0 else name(ctypes.get_errno())), None)
ways['pivot_root'] = (('ok' if call(155, b'/workspace', b'/workspace')[0] == 0 else 'EPERM'), None)
all_refused(ways)
control(attempt(lambda: os.chdir('/workspace'))[0] == 'ok')
`,
  ),
  filtered('P07-io_uring', 'io_uring_setup', [425, '1, 0']),
  filtered('P07-enter', 'io_uring_enter', [426, '-1, 0, 0, 0, 0, 0']),
  filtered('P07-register', 'io_uring_register', [427, '-1, 0, 0, 0']),
  filtered('P08-keyctl', 'keyctl(GET_KEYRING_ID, session)', [250, '0, -3, 1']),
  filtered('P08-add_key', 'add_key to the session keyring', [248, "b'user', b'airlock', b'x', 1, -3"]),
  filtered('P08-netlink', 'a netlink socket that hears the host kernel', [41, '16, 3, 15']),
  filtered('P08-vsock', 'a vsock socket: to the machine under this one', [41, '40, 1, 0']),
  filtered('P08-alg', 'an AF_ALG socket: the crypto of the kernel', [41, '38, 5, 0']),
  filtered('P08-userfaultfd', 'userfaultfd: stop the kernel where it reads', [323, '1']),
  filtered('P08-perf', 'perf_event_open', [298, "b'\\0' * 128, 0, -1, -1, 0"]),
  filtered('P08-personality', 'personality(ADDR_NO_RANDOMIZE)', [135, '0x0040000']),
  filtered('P08-handles', 'name_to_handle_at, the first half of an escape by file handles', [
    303,
    "-100, b'/usr', b'\\0' * 64, b'\\0' * 8, 0",
  ]),
  filtered('P08-arbitrary', 'a system call that no list names (kcmp)', [312, 'os.getpid(), os.getpid(), 2, 0, 0']),
  filtered('P08-tiocsti', 'type into a terminal (TIOCSTI), with a high bit in the number', [
    16,
    "os.open('/dev/null', 0), 0x100005412, 0",
  ]),
  {
    id: 'P08-compat',
    attack: 'system calls of 32-bit programs (int 0x80), which have other numbers',
    expected: 'killed by SIGSYS: no other ABI may call',
    program: `
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbx; mov eax, 20 (getpid there); int 0x80; pop rbx; ret
code.write(bytes.fromhex('53b814000000cd805bc3'))
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
child = os.fork()
if child == 0:
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    os._exit(0 if answer > 0 else 1)
_, status = os.waitpid(child, 0)
how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else 'exit %d' % os.WEXITSTATUS(status)
reached() if status == 0 else refused(how)
`,
    control: 'no-seccomp',
  },
  allowedBeside(
    'P08-x32',
    'system calls of the x32 ABI, which set a bit in the number',
    `
child = os.fork()
if child == 0:
    os._exit(0 if call(0x40000000 + 39)[0] > 0 else 1)
_, status = os.waitpid(child, 0)
how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else 'exit %d' % os.WEXITSTATUS(status)
reached() if status == 0 else refused(how)
control(call(39)[0] == os.getpid())
`,
  ),
  allowedBeside(
    'P08-privileged',
    'bpf, kexec_load, init_module, finit_module, reboot, swapon, acct, syslog, settimeofday, iopl, quotactl',
    `
numbers = {'bpf': 321, 'kexec_load': 246, 'init_module': 175, 'finit_module': 313, 'reboot': 169, 'swapon': 167, 'acct': 163,
           'syslog': 103, 'settimeofday': 164, 'iopl': 172, 'quotactl': 179, 'open_by_handle_at': 304, 'fanotify_init': 300,
           'sethostname': 170, 'move_mount': 429, 'fsopen': 430, 'open_tree': 428, 'mount_setattr': 442}
def result_of(number):
    result, error = call(number, 0, 0, 0, 0, 0)
    return ('ok', None) if result >= 0 or error not in (errno.EPERM, errno.ENOSYS) else (name(error), None)
all_refused({what: result_of(number) for what, number in numbers.items()})
control(call(39)[0] == os.getpid())
`,
  ),
  allowedBeside(
    'P08-raw',
    'raw sockets: ICMP, whole IP packets, whole frames',
    `
ways = {kind: attempt(lambda k=kind: socket.socket(*k)) for kind in ((2, 3, 1), (2, 3, 255), (10, 3, 58), (17, 3, 3), (17, 2, 3))}
all_refused(ways)
control(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))[0] == 'ok')
`,
  ),
  allowedBeside(
    'P01-capabilities',
    'regain a capability: capset, the ambient set, the bounding set',
    `
def sets(pid): return {line.split(':')[0]: int(line.split()[1], 16) for line in open('/proc/%s/status' % pid) if line.startswith('Cap')}
header = struct.pack('Ii', 0x20080522, 0)
results = [call(126, header, struct.pack('6I', *[0xffffffff] * 6))]
results += [(libc.prctl(47, 2, capability, 0, 0), 1) for capability in range(41)]
libc.prctl(28, 0x2f, 0, 0, 0)
own = sets('self')
reached(own) if any(own.values()) or any(result == 0 for result, _ in results) else refused('every set stays empty')
control(sets(1)['CapBnd'] != 0)
`,
  ),
  {
    id: 'P02-setuid',
    attack: 'give a copy of a program the set-uid bit',
    expected: 'EPERM: no mode with that bit passes the filter',
    program: `
import shutil
shutil.copy('/usr/bin/id', 'id')
how, _ = attempt(lambda: os.chmod('id', 0o4755))
reached() if how == 'ok' and os.stat('id').st_mode & 0o4000 else refused(how)
`,
    control: 'no-seccomp',
  },
  allowedBeside(
    'P02-programs',
    'become root by the set-uid programs of the host (su, sudo, mount, newgrp, passwd)',
    `
found = [os.path.join('/usr/bin', file) for file in os.listdir('/usr/bin')]
found = [path for path in found if os.path.isfile(path) and os.stat(path).st_mode & 0o4000]
def euid_under(path):
    # A program that keeps the rights of its file would show them in its own status while it waits.
    child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.05)
        return next(line.split()[2] for line in open('/proc/%d/status' % child.pid) if line.startswith('Uid'))
    except OSError:
        return '1000'
    finally:
        child.kill(); child.wait()
uids = {path: euid_under(path) for path in found}
said = subprocess.run(['su', '-c', 'id -u'], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
roots = [path for path, uid in uids.items() if uid == '0']
reached(roots or said) if roots or said.strip() == '0' else refused('%d programs stay uid 1000' % len(found))
control(subprocess.run(['id', '-u'], capture_output=True, text=True).stdout.strip() == '1000' and len(found) > 0)
`,
  ),
  {
    id: 'P17-nested',
    attack: 'a sandbox in the sandbox: unshare -Urmpf, as bubblewrap and rootless containers begin',
    expected: 'refused: no namespace inside',
    program: `
ran = subprocess.run(['unshare', '-Urmpf', 'id', '-u'], capture_output=True, text=True)
reached(ran.stdout) if ran.returncode == 0 else refused(ran.stderr.strip().splitlines()[-1])
`,
    control: 'no-seccomp',
  },
  allowedBeside(
    'P31-priority',
    'real-time scheduling, a negative nice value, real-time input and output',
    `
ways = {'fifo': attempt(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))}
# gVisor takes any number, and makes nothing of it.
if STANDARD: ways['nice'] = attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
ways['ioprio'] = ('ok', None) if call(251, 1, 0, (1 << 13) | 0)[0] == 0 and call(252, 1, 0)[0] == 1 << 13 else ('EPERM', None)
all_refused(ways)
control(attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5))[0] == 'ok')
`,
  ),
  allowedBeside(
    'P33-rlimits',
    'raise a hard limit of its own: open files, core files, locked memory',
    `
import resource
def raised(what): resource.setrlimit(what, (2 ** 40, 2 ** 40))
ways = {what: attempt(lambda w=what: raised(w)) for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)}
all_refused({what: ('EPERM' if how in ('ValueError', 'EPERM') else how, None) for what, (how, _) in ways.items()})
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
control(attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft // 2, hard)))[0] == 'ok')
`,
  ),
]
