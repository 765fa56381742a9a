import fc from 'fast-check'
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { requires } from '../../../../../../test/support/requires.ts'
import {
  compileSeccomp,
  complement,
  readSeccompProfile,
  forGvisor,
  type OciSeccomp,
  type SeccompProfile,
} from './seccomp.ts'

const profile = (allow: SeccompProfile['allow']): SeccompProfile => ({ about: [], allow, absent: [] })

describe('compileSeccomp', () => {
  it('makes one rule for each alternative of a condition', () => {
    const compiled = compileSeccomp(
      profile([
        { reason: '', syscalls: ['read', 'write'] },
        { reason: '', syscalls: ['socket'], when: [[{ arg: 0, oneOf: [1, 2] }], [{ arg: 0, noBitOf: 4 }]] },
        {
          reason: '',
          syscalls: ['other'],
          when: [
            [
              { arg: 0, oneOf: [16] },
              { arg: 2, oneOf: [0] },
            ],
          ],
        },
      ]),
      'x64',
    )
    const equal = (index: number, value: number, valueTwo: number) => ({
      index,
      op: 'SCMP_CMP_MASKED_EQ',
      value,
      valueTwo,
    })
    expect(compiled).toEqual({
      defaultAction: 'SCMP_ACT_ERRNO',
      defaultErrnoRet: 1,
      architectures: ['SCMP_ARCH_X86_64'],
      syscalls: [
        { names: ['read', 'write'], action: 'SCMP_ACT_ALLOW' },
        { names: ['socket'], action: 'SCMP_ACT_ALLOW', args: [equal(0, 0xff_ff_ff_ff, 1)] },
        { names: ['socket'], action: 'SCMP_ACT_ALLOW', args: [equal(0, 0xff_ff_ff_ff, 2)] },
        { names: ['socket'], action: 'SCMP_ACT_ALLOW', args: [equal(0, 4, 0)] },
        { names: ['other'], action: 'SCMP_ACT_ALLOW', args: [equal(0, 0xff_ff_ff_ff, 16), equal(2, 0xff_ff_ff_ff, 0)] },
      ],
    })
  })

  it('fails closed on a machine that it has no list for', () => {
    expect(() => compileSeccomp(profile([]), 'mips')).toThrow('There is no system call allowlist for "mips".')
  })

  it('answers as absent only what is nowhere allowed', () => {
    const { allow, absent } = readSeccompProfile()
    const allowed = allow.flatMap(({ syscalls }) => syscalls)
    expect(allowed).toHaveLength(new Set(allowed).size)
    expect(absent.flatMap(({ syscalls }) => syscalls).filter((name) => allowed.includes(name))).toEqual([])
  })

  it('leaves to gVisor what must look absent and cannot, and denies it the rest', () => {
    const { allow, absent } = forGvisor(readSeccompProfile())
    const allowed = new Set(allow.flatMap(({ syscalls }) => syscalls))
    const has = (name: string) => allowed.has(name)
    expect([absent, has('clone3'), has('openat2'), has('pselect6'), has('pselect')]).toEqual([
      [],
      true,
      false,
      true,
      true,
    ])
  })

  it('allows nothing that reaches beyond a sandbox', () => {
    const allowed = new Set(readSeccompProfile().allow.flatMap(({ syscalls }) => syscalls))
    const forbidden = ['ptrace', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'bpf', 'perf_event_open']
      .concat([
        'userfaultfd',
        'io_uring_setup',
        'io_uring_enter',
        'io_uring_register',
        'keyctl',
        'add_key',
        'request_key',
      ])
      .concat([
        'mount',
        'umount2',
        'move_mount',
        'fsopen',
        'open_tree',
        'mount_setattr',
        'pivot_root',
        'chroot',
        'setns',
      ])
      .concat(['unshare', 'clone3', 'openat2', 'init_module', 'finit_module', 'kexec_load', 'reboot', 'swapon', 'acct'])
      .concat([
        'syslog',
        'quotactl',
        'fanotify_init',
        'open_by_handle_at',
        'name_to_handle_at',
        'kcmp',
        'iopl',
        'ioperm',
      ])
      .concat(['settimeofday', 'clock_settime', 'clock_adjtime', 'adjtimex', 'sethostname', 'lookup_dcookie'])
    expect(forbidden.filter((name) => allowed.has(name))).toEqual([])
  })
})

describe.each(['x64', 'arm64'] as const)(
  'the filter of %s, compiled as a runtime does',
  requires('python3', 'crun'),
  (arch) => {
    const compiled = compileSeccomp(readSeccompProfile(), arch)
    const ask = (calls: readonly (readonly [string, ...number[]])[]) => judge(compiled, calls)

    it('compiles, and every name in it is a call of this machine or of another that we support', () => {
      const { unknown, length } = ask([])
      const elsewhere = judge(compileSeccomp(readSeccompProfile(), arch === 'x64' ? 'arm64' : 'x64'), []).unknown
      expect(length).toBeGreaterThan(300)
      // What neither has is of 32-bit machines, or newer than the library.
      expect(unknown.filter((name) => elsewhere.includes(name) && !ELSEWHERE.test(name))).toEqual([])
    })

    it('allows what ordinary programs call', () => {
      const calls = [
        'read',
        'openat',
        'execve',
        'mmap',
        'futex',
        'epoll_pwait',
        'getrandom',
        'statx',
        'pidfd_open',
        'rseq',
      ]
      expect(ask(calls.map((name) => [name])).answers).toEqual(calls.map(() => 'allow'))
    })

    it.each([
      ['clone with a thread', ['clone', 0x3d_0f_00], 'allow'],
      ['clone with a user namespace', ['clone', 0x10_00_00_11], 'errno 1'],
      ['clone with a network namespace', ['clone', 0x40_00_00_11], 'errno 1'],
      ['clone with a mount namespace', ['clone', 0x2_00_11], 'errno 1'],
      ['clone3', ['clone3', 0, 88], 'errno 38'],
      ['openat2', ['openat2', 0, 0, 0, 24], 'errno 38'],
      ['a unix socket', ['socket', 1, 1, 0], 'allow'],
      ['a routing socket', ['socket', 16, 3, 0], 'allow'],
      ['an audit socket', ['socket', 16, 3, 9], 'errno 1'],
      ['a vsock socket', ['socket', 40, 1, 0], 'errno 1'],
      ['a family with a high bit', ['socket', 0x1_00_00_00_28, 1, 0], 'errno 1'],
      ['typing into a terminal', ['ioctl', 0, 0x54_12], 'errno 1'],
      ['the size of a terminal', ['ioctl', 0, 0x54_13], 'allow'],
      ['another line discipline', ['ioctl', 0, 0x54_23], 'errno 1'],
      ['plain personality', ['personality', 0], 'allow'],
      ['no randomization', ['personality', 0x4_00_00], 'errno 1'],
      ['a set-uid bit', ['fchmodat', 0, 0, 0o4755], 'errno 1'],
      ['a plain mode', ['fchmodat', 0, 0, 0o755], 'allow'],
      ['mount', ['mount'], 'errno 1'],
      ['ptrace', ['ptrace'], 'errno 1'],
      ['bpf', ['bpf'], 'errno 1'],
      ['io_uring_setup', ['io_uring_setup'], 'errno 1'],
      ['a number that nobody has', ['9999'], 'errno 1'],
      ['a call by another ABI', ['foreign read'], 'kill'],
    ] as const)('decides %s', (_what, call, decision) => {
      expect(ask([call]).answers).toEqual([decision])
    })
  },
)

/** Calls of 32-bit machines, and those that are newer than the oldest library we know. */
const ELSEWHERE =
  /64$|32$|^_|^(?:waitpid|send|recv|ipc|mmap2|ugetrlimit|cachestat|mseal|map_shadow_stack|futex_(?:wake|wait|requeue)|fchmodat2)$/u

interface Judgement {
  readonly answers: readonly string[]
  readonly unknown: readonly string[]
  readonly length: number
}

function judge(profile: OciSeccomp, calls: readonly (readonly [string, ...number[]])[]): Judgement {
  const program = fileURLToPath(new URL('../../fixtures/seccomp_filter.py', import.meta.url))
  const input = JSON.stringify({ profile, calls })
  return JSON.parse(execFileSync('/usr/bin/python3', [program], { input, encoding: 'utf8' })) as Judgement
}

describe('complement', () => {
  it('covers every number but the excluded ones', () => {
    const number = fc.oneof(fc.nat(0xff_ff_ff_ff), fc.constantFrom(0, 1, 0x54_11, 0x54_12, 0x54_1c, 0xff_ff_ff_ff))
    fc.assert(
      fc.property(fc.array(number, { minLength: 1, maxLength: 4 }), number, (excluded, probe) => {
        const covered = complement(excluded).some(({ mask, value }) => (BigInt(probe) & BigInt(mask)) === BigInt(value))
        expect(covered).toBe(!excluded.includes(probe))
        for (const one of excluded)
          expect(complement(excluded).some(({ mask, value }) => (BigInt(one) & BigInt(mask)) === BigInt(value))).toBe(
            false,
          )
      }),
      { numRuns: 300 },
    )
  })
})
