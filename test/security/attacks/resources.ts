import type { Attack } from './attack.ts'

/** What is bounded. Floods of output, time and disk are in `bombs.test.ts`, where a neighbour looks on. */
export const RESOURCE_ATTACKS: readonly Attack[] = [
  {
    id: 'R01-forks',
    attack: 'have 400 processes at once',
    expected: 'EAGAIN at the limit; in the strict tier the sandbox may end',
    program: `
children = []
try:
    for _ in range(400):
        children.append(os.posix_spawn('/bin/sleep', ['sleep', '30'], {}))
    reached()
except OSError as error:
    refused(name(error.errno))
for pid in children:
    os.kill(pid, signal.SIGKILL)
for pid in children:
    os.waitpid(pid, 0)
`,
    control: 'no-pids-limit',
    wrecks: true,
    // There a limit counts threads of its own kernel too: the conformance suite shows that it holds.
    tiers: ['standard'],
  },
  {
    id: 'R01-threads',
    attack: 'have 400 threads at once',
    expected: 'refused at the limit of processes',
    program: `
import threading
stop = threading.Event()
started = 0
try:
    for _ in range(400):
        threading.Thread(target=stop.wait, daemon=True).start()
        started += 1
    reached()
except RuntimeError as error:
    refused('at the limit')
stop.set()
`,
    control: 'no-pids-limit',
    wrecks: true,
    tiers: ['standard'],
  },
  {
    id: 'R02-memory',
    attack: 'hold more memory than the limit',
    expected: 'killed, and the guest lives',
    program: `
pid = os.fork()
if pid == 0:
    block = bytearray(200 * 1024 * 1024)
    for at in range(0, len(block), 4096):
        block[at] = 1
    os._exit(0)
_, status = os.waitpid(pid, 0)
reached() if status == 0 else refused(signal.Signals(os.WTERMSIG(status)).name)
`,
    control: 'no-memory-limit',
    wrecks: true,
    tiers: ['standard'],
  },
  {
    id: 'R02-hidden-memory',
    attack: 'hold memory that is mapped by no process (memfd)',
    expected: 'killed: all of it counts',
    program: `
# Whoever is killed frees nothing: it may well be this program.
held = [os.memfd_create('held-%d' % at) for at in range(4)]
for fd in held:
    for _ in range(50):
        os.write(fd, b'x' * (1 << 20))
reached()
`,
    control: 'no-memory-limit',
    wrecks: true,
    tiers: ['standard'],
  },
  {
    id: 'R04-descriptors',
    attack: 'open more files than the limit, in one process',
    expected: 'EMFILE',
    program: `
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
how, _ = attempt(lambda: [held.append(os.open('/dev/null', 0)) for _ in range(100_000)])
reached(len(held)) if how == 'ok' or len(held) > 4096 else refused(how)
control(len(held) > 100)
for fd in held: os.close(fd)
`,
    control: 'itself',
  },
  {
    id: 'R04-watches',
    attack: 'take 5,000 inotify instances, which the host counts by user',
    expected: 'refused after some; its user is its own, so nobody else runs out',
    program: `
descriptors = []
how, _ = attempt(lambda: [descriptors.append(libc.inotify_init1(0)) or (descriptors[-1] < 0 and os.open('/nonexistent', 0)) for _ in range(5000)])
made = [fd for fd in descriptors if fd >= 0]
reached(len(made)) if len(made) >= 5000 else refused('after some')
control(len(made) > 10)
for fd in made: os.close(fd)
`,
    control: 'itself',
  },
]
