import type { Weakening } from '../support/weakened-runtime.ts'

/**
 * Attacks that a program inside can try. Each prints `REACHED` when it gets through and says why when it does not. An
 * attack counts only because the same program gets through once the one line that stops it is gone (`without`).
 */
export interface Attack {
  readonly id: string
  readonly attack: string
  readonly program: string
  readonly without: Weakening
}

/** A raw system call; the result of the last line decides. */
const syscall = (number: number, args: string) => `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall(${number}, ${args})
error = ctypes.get_errno()
print('REACHED' if result >= 0 or error not in (1, 38) else 'refused: ' + os.strerror(error))
`

export const ATTACKS: readonly Attack[] = [
  {
    id: 'P05-unshare',
    attack: 'unshare(CLONE_NEWUSER): namespaces inside namespaces',
    program: syscall(272, '0x10000000'),
    without: 'no-seccomp',
  },
  {
    id: 'P05-clone',
    attack: 'clone(CLONE_NEWUSER) by flags',
    program: syscall(56, '0x10000000 | 17, 0, 0, 0, 0'),
    without: 'no-seccomp',
  },
  { id: 'P04-ptrace', attack: 'ptrace(TRACEME)', program: syscall(101, '0, 0, 0, 0'), without: 'no-seccomp' },
  {
    id: 'P08-keyctl',
    attack: 'keyctl(GET_KEYRING_ID, session)',
    program: syscall(250, '0, -3, 1'),
    without: 'no-seccomp',
  },
  {
    id: 'P08-netlink',
    attack: 'a netlink socket that hears the host kernel',
    program: syscall(41, '16, 3, 15'),
    without: 'no-seccomp',
  },
  {
    id: 'P08-personality',
    attack: 'personality(ADDR_NO_RANDOMIZE)',
    program: syscall(135, '0x0040000'),
    without: 'no-seccomp',
  },
  { id: 'P07-io_uring', attack: 'io_uring_setup', program: syscall(425, '1, 0'), without: 'no-seccomp' },
  {
    id: 'P08-arbitrary',
    attack: 'a system call that no list names (kcmp)',
    program: syscall(312, 'os.getpid(), os.getpid(), 2, 0, 0'),
    without: 'no-seccomp',
  },
  {
    id: 'P02-setuid',
    attack: 'give a copy of a program the set-uid bit',
    program: `
import os, shutil
shutil.copy('/usr/bin/id', '/workspace/id')
try:
    os.chmod('/workspace/id', 0o4755)
    print('REACHED' if os.stat('/workspace/id').st_mode & 0o4000 else 'refused: bit not set')
except OSError as error:
    print('refused:', error)
`,
    without: 'no-seccomp',
  },
  {
    id: 'N01-host-loopback',
    attack: 'connect to a server on the loopback of the host',
    program: `
import os, socket
try:
    socket.create_connection(('127.0.0.1', int(os.environ['HOST_PORT'])), timeout=3)
    print('REACHED')
except OSError as error:
    print('refused:', error)
`,
    without: 'no-network-namespace',
  },
  {
    id: 'N01-devices',
    attack: 'find a network device besides loopback',
    program: `
lines = open('/proc/net/dev').read().splitlines()[2:]
devices = [line.split(':')[0].strip() for line in lines]
print('REACHED' if [d for d in devices if d != 'lo'] else 'refused: only ' + str(devices))
`,
    without: 'no-network-namespace',
  },
  {
    id: 'P03-processes',
    attack: 'see a process of the host',
    program: `
import os
pid = os.environ['HOST_PID']
try:
    print('REACHED' if os.environ['HOST_MARK'] in open('/proc/%s/cmdline' % pid).read() else 'refused: another process')
except OSError as error:
    print('refused:', error)
`,
    without: 'no-pid-namespace',
  },
  {
    id: 'F01-host-file',
    attack: 'read a host file that everybody on the host may read',
    program: `
import os
for path in (os.environ['HOST_FILE'], '/tmp/shared/' + os.path.basename(os.environ['HOST_FILE'])):
    try:
        print('REACHED', open(path).read())
        break
    except OSError as error:
        print('refused:', error)
`,
    without: 'shared-host-directory',
  },
  {
    id: 'P13-masked',
    attack: 'read a masked file of /proc',
    program: `
try:
    print('REACHED' if open('/proc/zoneinfo').read() else 'refused: empty')
except OSError as error:
    print('refused:', error)
`,
    without: 'no-masked-paths',
  },
  {
    id: 'R01-forks',
    attack: 'have 400 processes at once',
    program: `
import os, signal, time
children = []
try:
    for _ in range(400):
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
        children.append(pid)
    print('REACHED')
except OSError as error:
    print('refused:', error, 'after', len(children))
for pid in children:
    os.kill(pid, signal.SIGKILL)
`,
    without: 'no-pids-limit',
  },
  {
    id: 'R02-memory',
    attack: 'hold more memory than the limit',
    program: `
import os
pid = os.fork()
if pid == 0:
    block = bytearray(200 * 1024 * 1024)
    for at in range(0, len(block), 4096):
        block[at] = 1
    os._exit(0)
_, status = os.waitpid(pid, 0)
print('REACHED' if status == 0 else 'refused: status %d' % status)
`,
    without: 'no-memory-limit',
  },
]
