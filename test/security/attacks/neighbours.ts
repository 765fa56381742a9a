import type { Attack } from './attack.ts'

/** What is beside it: the guest, the processes, sockets, devices and kernel files of the host. */
export const NEIGHBOUR_ATTACKS: readonly Attack[] = [
  {
    id: 'P03-processes',
    attack: 'see a process of the host',
    expected: 'not there: pids are its own',
    program: `
how, text = attempt(lambda: open('/proc/%s/cmdline' % os.environ['HOST_PID']).read())
reached() if how == 'ok' and os.environ['HOST_MARK'] in text else refused(how if how != 'ok' else 'another process')
`,
    control: 'no-pid-namespace',
    tiers: ['standard'],
  },
  {
    id: 'P03-numbers',
    attack: 'signal every pid of the host by its number',
    expected: 'ESRCH for all but its own',
    program: `
def threads(): return {int(thread) for pid in os.listdir('/proc') if pid.isdigit() for thread in attempt(lambda: os.listdir('/proc/%s/task' % pid))[1] or []}
before = threads()
outside = [pid for pid in range(2, 40000) if pid not in before and attempt(lambda: os.kill(pid, 0))[0] != 'ESRCH']
outside = [pid for pid in outside if pid not in threads()]
reached(outside[:5]) if outside else refused('ESRCH')
control(attempt(lambda: os.kill(os.getpid(), 0))[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'P04-guest',
    attack: 'signal, trace, write to and take over the guest and the first process',
    expected: 'EPERM and EACCES; the same on a child of its own works',
    program: `
def ways(pid):
    return {
        'kill %d' % pid: attempt(lambda: os.kill(pid, signal.SIGKILL if pid != child.pid else 0)),
        'mem %d' % pid: attempt(lambda: open('/proc/%d/mem' % pid, 'r+b')),
        'exe %d' % pid: attempt(lambda: open('/proc/%d/exe' % pid, 'r+b')) if pid != child.pid else ('ok', None),
        'root %d' % pid: attempt(lambda: os.listdir('/proc/%d/root/' % pid)),
        # gVisor lets everybody say which processor, and makes nothing of it.
        'affinity %d' % pid: attempt(lambda: os.sched_setaffinity(pid, {0})) if STANDARD or pid == child.pid else ('EPERM', None),
        'limits %d' % pid: attempt(lambda: __import__('resource').prlimit(pid, 7, (64, 64))),
    }
child = subprocess.Popen(['sleep', '30'])
time.sleep(0.3)
guests = [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and os.stat('/proc/' + pid).st_uid == 0]
all_refused({what: how for pid in guests for what, how in ways(pid).items()})
own = ways(child.pid)
child.kill(); child.wait()
control(len(guests) >= 2 and own['kill %d' % child.pid][0] == 'ok' and own['affinity %d' % child.pid][0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'P04-descriptors',
    attack: 'open the descriptors of the guest through /proc',
    expected: 'none but /dev/null',
    program: `
opened = []
for pid in [pid for pid in os.listdir('/proc') if pid.isdigit() and os.stat('/proc/' + pid).st_uid == 0]:
    how, fds = attempt(lambda: os.listdir('/proc/%s/fd' % pid))
    for fd in fds or []:
        path = '/proc/%s/fd/%s' % (pid, fd)
        if attempt(lambda: os.open(path, os.O_RDWR | os.O_NONBLOCK))[0] == 'ok':
            opened.append(os.path.basename(attempt(lambda: os.readlink(path))[1] or '?'))
# What gVisor calls host:[n] is the /dev/null that the first process was given.
through = [what for what in opened if what != 'null' and not what.startswith('host:')]
reached(through) if through else refused('none can be used')
control(attempt(lambda: os.open('/proc/self/fd/%d' % os.open('/workspace', 0), 0))[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'P06-control',
    attack: 'dial the control socket of the guest',
    expected: 'EACCES: its directory lets nobody else pass',
    program: `
def dial(path):
    made = socket.socket(socket.AF_UNIX); made.connect(path); return made
all_refused({path: attempt(lambda p=path: dial(p)) for path in ('/run/guest/control/guest.sock', '/proc/1/root/run/guest/control/guest.sock')})
server = socket.socket(socket.AF_UNIX); server.bind('own.sock'); server.listen()
control(attempt(lambda: dial('own.sock'))[0] == 'ok' and len(socket.socketpair()) == 2)
`,
    control: 'itself',
  },
  {
    id: 'P06-abstract',
    attack: 'dial an abstract unix socket of the host',
    expected: 'ECONNREFUSED: those belong to a network namespace',
    program: `
def dial():
    made = socket.socket(socket.AF_UNIX); made.settimeout(3); made.connect('\\0' + os.environ['HOST_ABSTRACT'])
how, _ = attempt(dial)
reached() if how == 'ok' else refused(how)
`,
    control: 'no-network-namespace',
  },
  {
    id: 'P14-sockets',
    attack:
      'dial the sockets of docker, containerd, podman, D-Bus, an SSH agent, X11, and one that the host lets everybody dial',
    expected: 'none is there',
    program: `
paths = ['/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock', '/run/podman/podman.sock', '/run/crio/crio.sock',
         '/run/dbus/system_bus_socket', '/run/systemd/private', '/tmp/.X11-unix/X0', '/run/user/1000/bus', os.environ['HOST_SOCKET'],
         '/tmp/shared/' + os.path.basename(os.environ['HOST_SOCKET'])]
def dial(path):
    made = socket.socket(socket.AF_UNIX); made.settimeout(3); made.connect(path)
all_refused({path: attempt(lambda p=path: dial(p)) for path in paths})
`,
    control: 'shared-host-directory',
  },
  {
    id: 'N01-host-loopback',
    attack: 'connect to a server on the loopback of the host',
    expected: 'ECONNREFUSED: loopback is its own',
    program: `
how, _ = attempt(lambda: socket.create_connection(('127.0.0.1', int(os.environ['HOST_PORT'])), timeout=3))
reached() if how == 'ok' else refused(how)
`,
    control: 'no-network-namespace',
  },
  {
    id: 'N01-devices',
    attack: 'find a network device besides loopback',
    expected: 'only lo',
    program: `
devices = [device for _, device in socket.if_nameindex()]
reached(devices) if [device for device in devices if device != 'lo'] else refused('only %s' % devices)
`,
    control: 'no-network-namespace',
  },
  {
    id: 'N02-metadata',
    attack: 'the metadata service of clouds, by every spelling, and addresses outside',
    expected: 'unreachable at once',
    program: `
hosts = ['169.254.169.254', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '::ffff:169.254.169.254', 'fd00:ec2::254', '192.0.2.1', '8.8.8.8', '2001:db8::1']
all_refused({host: attempt(lambda h=host: socket.create_connection((h, 80), timeout=3)) for host in hosts})
server = socket.create_server(('127.0.0.1', 0))
control(attempt(lambda: socket.create_connection(server.getsockname(), timeout=3))[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'P11-exe',
    attack: 'overwrite the running program of the guest, and what starts user code, by /proc/self/exe and by path',
    expected: 'read-only or EACCES',
    program: `
targets = ['/opt/airlock/bin/node', '/opt/airlock/guest.cjs', '/usr/bin/setpriv', '/bin/sh', '/usr/bin/env', '/proc/1/exe', '/proc/self/exe']
targets += ['/proc/%s/exe' % pid for pid in os.listdir('/proc') if pid.isdigit()]
all_refused({path: attempt(lambda p=path: open(p, 'r+b')) for path in targets})
open('own', 'w').close()
control(attempt(lambda: open('own', 'r+b'))[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'P13-devices',
    attack: 'make block and character devices, and open those of the host (mem, kmsg, kvm, fuse, loop, sda, input)',
    expected: 'EPERM, and none is there',
    program: `
import stat
def made(at, kind):
    # gVisor makes the name, and has nothing behind it.
    os.mknod(at, kind[0] | 0o666, os.makedev(*kind[1:]))
    return STANDARD or os.open(at, os.O_RDONLY | os.O_NONBLOCK)
kinds = ((stat.S_IFCHR, 1, 1), (stat.S_IFCHR, 1, 11), (stat.S_IFBLK, 7, 0), (stat.S_IFBLK, 8, 0), (stat.S_IFCHR, 10, 232))
ways = {'mknod %s in %s' % (kind, place): attempt(lambda k=kind, p=place: made('%s/device-%d-%d-%d' % (p, os.getpid(), *k[1:]), k)) for kind in kinds for place in ('/tmp', '.')}
names = ['mem', 'kmem', 'port', 'kmsg', 'kvm', 'loop0', 'loop-control', 'sda', 'vda', 'input/event0', 'vsock', 'userfaultfd']
# Those of gVisor are of its own kernel.
names += ['fuse', 'net/tun'] if STANDARD else []
ways.update({device: attempt(lambda d=device: os.open('/dev/' + d, os.O_RDONLY)) for device in names})
all_refused(ways)
control(attempt(lambda: os.mknod('pipe', stat.S_IFIFO | 0o600))[0] == 'ok' and attempt(lambda: os.open('/dev/null', 0))[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'P13-masked',
    attack: 'read a masked file of /proc',
    expected: 'empty, or not there',
    program: `
how, text = attempt(lambda: open('/proc/zoneinfo').read())
reached() if text else refused('empty' if how == 'ok' else how)
`,
    control: 'no-masked-paths',
  },
  {
    id: 'P13-facts',
    attack: 'facts of the host in /proc: partitions, disk statistics, file systems, boot line, boot id',
    expected: 'empty, or made up by the kernel of gVisor',
    program: `
def read(path): return open(path).read().strip()
def listed(path): return ' '.join(os.listdir(path))
ways = {path: attempt(lambda p=path: read(p)) for path in ('/proc/partitions', '/proc/diskstats', '/proc/sys/kernel/random/boot_id')}
ways['/proc/fs'] = attempt(lambda: listed('/proc/fs'))
# The one of gVisor is the same on every host.
if STANDARD: ways['/proc/cmdline'] = attempt(lambda: read('/proc/cmdline'))
seen = [path for path, (how, text) in ways.items() if text]
reached(seen) if seen else refused(', '.join(sorted({'empty' if how == 'ok' else how for how, _ in ways.values()})))
`,
    control: 'no-masked-paths',
  },
  {
    id: 'P13-activity',
    attack:
      'what neighbours do, by counts of the whole host in /proc: control groups, pressure, interrupts, open files, inodes, terminals',
    expected: 'empty, or not there',
    tiers: ['standard'],
    program: `
def read(path):
    if not os.path.isdir(path): return open(path).read().strip()
    return ' '.join(open(os.path.join(path, name)).read().strip() for name in os.listdir(path))
names = ['cgroups', 'pressure', 'softirqs', 'interrupts', 'schedstat', 'buddyinfo', 'sys/kernel/pty/nr']
names += ['sys/fs/' + name for name in ('file-nr', 'inode-nr', 'inode-state', 'dentry-state', 'aio-nr')]
ways = {name: attempt(lambda n=name: read('/proc/' + n)) for name in names}
seen = [name for name, (_, text) in ways.items() if text]
reached(seen) if seen else refused(', '.join(sorted({'empty' if how == 'ok' else how for how, _ in ways.values()})))
`,
    control: 'no-masked-paths',
  },
  {
    id: 'P26-sysctl',
    attack: 'write kernel settings: core_pattern, modprobe, binfmt_misc, sysrq, uevent_helper, panic',
    expected: 'EROFS, EACCES, or not there',
    program: `
paths = ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/kernel/panic', '/proc/sys/fs/binfmt_misc/register', '/proc/sysrq-trigger',
         '/sys/kernel/uevent_helper', '/proc/sys/vm/overcommit_memory', '/proc/sys/kernel/hostname', '/proc/1/oom_score_adj', '/sys/fs/cgroup/release_agent']
all_refused({path: attempt(lambda p=path: open(p, 'w').write('1')) for path in paths})
control(attempt(lambda: open('/proc/self/oom_score_adj').read())[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'P26-groups',
    attack: 'leave its control group, or raise a limit in any control group that can be seen',
    expected: 'nothing there can be written',
    program: `
files = [os.path.join(base, file) for top in ('/sys/fs/cgroup', '/run/guest/groups') for base, _, names in os.walk(top) for file in names]
files += ['/run/guest/groups/%s/%s' % (group, file) for group in ('pids', 'memory', 'cpu', 'freezer', 'user') for file in ('tasks', 'cgroup.procs', 'pids.max', 'memory.max', 'memory.limit_in_bytes')]
all_refused({path: attempt(lambda p=path: open(p, 'w').write('0')) for path in files})
control(attempt(lambda: open('/proc/self/cgroup').read())[0] == 'ok')
`,
    control: 'itself',
  },
]
