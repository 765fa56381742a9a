import type { Weakening } from '../../support/weakened-runtime.ts'

export type Tier = 'standard' | 'strict'

/**
 * What a program inside can try. It prints `REACHED` when it gets through, and why not when it does not. What counts is shown
 * beside it: either the same program gets through once one line of the wall is gone, or it shows in the same run that what it
 * does works where it is allowed (`control: works`).
 */
export interface Attack {
  /** The letter and number are those of the catalogue; the word tells variants apart. */
  readonly id: string
  readonly attack: string
  readonly expected: string
  /** Python, uploaded as a file: a rule about command lines would see nothing in it. */
  readonly program: string
  readonly control: Weakening | 'itself'
  /** Where it means something; both unless said. */
  readonly tiers?: readonly Tier[]
  /** Whether the sandbox is good for nothing afterwards. */
  readonly wrecks?: true
}

/** What every program starts with. */
const PRELUDE = String.raw`
import ctypes, errno, os, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
STANDARD = os.environ.get('TIER') != 'strict'
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args])
    return result, ctypes.get_errno()
def name(error): return errno.errorcode.get(error, str(error))
def reached(what=''): print('REACHED', what, flush=True)
def refused(why): print('refused:', why, flush=True)
def control(works): print('control:', 'works' if works else 'fails', flush=True)
def attempt(work):
    try:
        return 'ok', work()
    except OSError as error:
        return name(error.errno or 0), None
    except Exception as error:
        return type(error).__name__, None
# Each of the ways in must be refused for the whole to be.
def all_refused(ways):
    through = [what for what, (how, _) in ways.items() if how == 'ok']
    reached(through) if through else refused(', '.join(sorted({how for how, _ in ways.values()})))
`

/** Whatever got through or did not: both flags of the host are looked for, by every path that names the host's root. */
const HUNT = String.raw`
def hunt():
    for flag in (os.environ['FLAG_ROOT'], os.environ['FLAG_WORLD']):
        roots = ['', '/proc/self/root', '/proc/1/root', '/proc/self/cwd/../../../..', '/proc/1/cwd', '/proc/thread-self/root']
        roots += ['/proc/%s/root' % pid for pid in os.listdir('/proc') if pid.isdigit()]
        roots += ['/tmp/shared/../../../..', '/proc/self/fd/0/../..', '/dev/fd/../../..', '/grants/..', '/workspace/../..']
        for root in roots + ['/tmp/shared']:
            try:
                print('FLAG', open(root + (flag if root != '/tmp/shared' else '/' + os.path.basename(flag))).read(), flush=True)
            except OSError:
                pass
hunt()
`

/** The program as it runs. */
export function programOf({ program }: Attack): string {
  return `${PRELUDE}${program}${HUNT}`
}

/** A raw system call of x86-64 that must not reach the kernel's own code. */
export function syscall(number: number, args: string): string {
  return `
result, error = call(${[number, args].filter((part) => part !== '').join(', ')})
reached(result) if result >= 0 or error not in (errno.EPERM, errno.ENOSYS) else refused(name(error))
`
}
