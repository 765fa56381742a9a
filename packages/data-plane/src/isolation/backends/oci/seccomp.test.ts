import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileSeccomp, complement, readSeccompProfile, type SeccompProfile } from './seccomp.ts'

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
