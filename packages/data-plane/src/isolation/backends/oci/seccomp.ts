import { AirlockError } from '@airlock/contract'
import { readFileSync } from 'node:fs'
import { z } from 'zod'

const number = z.union([z.int(), z.string().regex(/^0(?:x[0-9a-f]+|o[0-7]+)$/u)]).transform(Number)

/** A condition on one argument. Arguments are compared by their low 32 bits, as the kernel takes them. */
const condition = z.union([
  z.strictObject({ arg: z.int().min(0).max(5), oneOf: z.array(number) }),
  z.strictObject({ arg: z.int().min(0).max(5), noneOf: z.array(number) }),
  z.strictObject({ arg: z.int().min(0).max(5), noBitOf: number }),
])
type Condition = z.infer<typeof condition>

const profile = z.strictObject({
  about: z.array(z.string()),
  allow: z.array(
    z.strictObject({
      reason: z.string(),
      syscalls: z.array(z.string()),
      /** Allowed when all conditions of any of these hold; always when absent. */
      when: z.array(z.array(condition)).optional(),
    }),
  ),
  /** Answered with ENOSYS, so that programs fall back to what can be filtered. */
  absent: z.array(
    z.strictObject({
      reason: z.string(),
      syscalls: z.array(z.string()),
      /** For a runtime that knows no other error than EPERM. */
      orElse: z.enum(['allow', 'deny']),
    }),
  ),
})
export type SeccompProfile = z.infer<typeof profile>

export interface OciSeccomp {
  readonly defaultAction: 'SCMP_ACT_ERRNO'
  readonly defaultErrnoRet: number
  readonly architectures: readonly string[]
  readonly syscalls: readonly OciSyscallRule[]
}

interface OciSyscallRule {
  readonly names: readonly string[]
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO'
  readonly errnoRet?: number
  readonly args?: readonly OciArg[]
}

interface OciArg {
  readonly index: number
  readonly op: 'SCMP_CMP_MASKED_EQ'
  /** The mask. */
  readonly value: number
  readonly valueTwo: number
}

const EPERM = 1
const ENOSYS = 38
const ALL_BITS = 0xff_ff_ff_ff

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'SCMP_ARCH_X86_64', arm64: 'SCMP_ARCH_AARCH64' }

export function readSeccompProfile(): SeccompProfile {
  return profile.parse(JSON.parse(readFileSync(new URL('./seccomp.json', import.meta.url), 'utf8')))
}

/**
 * For gVisor, which answers everything that is refused with EPERM. What programs must see as absent is left to its own
 * kernel, which filters nothing that could reach the host: that has filters of its own.
 */
export function forGvisor(source: SeccompProfile): SeccompProfile {
  const left = source.absent.filter(({ orElse }) => orElse === 'allow')
  const allow = [...source.allow, ...left.map(({ reason, syscalls }) => ({ reason, syscalls }))]
  const named = allow.map((group) => ({
    ...group,
    syscalls: group.syscalls.flatMap((name) => OLD_NAMES[name] ?? [name]),
  }))
  return { ...source, allow: named, absent: [] }
}

/** What versions of gVisor before 2024 call a call otherwise; names that a runtime does not know mean nothing to it. */
const OLD_NAMES: Readonly<Record<string, readonly string[]>> = { pselect6: ['pselect6', 'pselect'] }

/** What is not allowed is EPERM; only this machine's own instruction set may call at all. Fails closed elsewhere. */
export function compileSeccomp(source: SeccompProfile, arch: string = process.arch): OciSeccomp {
  const architecture = ARCHITECTURES[arch]
  if (architecture === undefined)
    throw new AirlockError('isolation_unavailable', `There is no system call allowlist for "${arch}".`)
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: EPERM,
    architectures: [architecture],
    syscalls: [
      ...source.allow.flatMap(({ syscalls, when }) => compileGroup(syscalls, when)),
      ...source.absent.map(({ syscalls }) => ({
        names: syscalls,
        action: 'SCMP_ACT_ERRNO' as const,
        errnoRet: ENOSYS,
      })),
    ],
  }
}

function compileGroup(
  names: readonly string[],
  when: readonly (readonly Condition[])[] | undefined,
): readonly OciSyscallRule[] {
  if (!when) return [{ names, action: 'SCMP_ACT_ALLOW' }]
  return when
    .flatMap((conditions) => product(conditions.map(alternatives)))
    .map((args) => ({ names, action: 'SCMP_ACT_ALLOW', args }))
}

/** A filter knows only "these bits have this value", joined by and; so every condition becomes several of them, joined by or. */
function alternatives(one: Condition): readonly OciArg[] {
  const equal = (mask: number, value: number): OciArg => ({
    index: one.arg,
    op: 'SCMP_CMP_MASKED_EQ',
    value: mask,
    valueTwo: value,
  })
  if ('noBitOf' in one) return [equal(one.noBitOf, 0)]
  if ('oneOf' in one) return one.oneOf.map((value) => equal(ALL_BITS, value))
  return complement(one.noneOf).map(({ mask, value }) => equal(mask, value))
}

/**
 * All 32-bit numbers but these, as ranges of common leading bits. "Not equal" would compare 64 bits, of which the kernel
 * looks at 32: a forbidden number with a high bit set would pass.
 */
export function complement(excluded: readonly number[]): readonly { mask: number; value: number }[] {
  const ranges: { mask: number; value: number }[] = []
  const walk = (value: number, size: number): void => {
    const inside = excluded.filter((number) => number >= value && number < value + size)
    if (inside.length === 0) {
      ranges.push({ mask: ALL_BITS - (size - 1), value })
      return
    }
    if (size === 1) return
    walk(value, size / 2)
    walk(value + size / 2, size / 2)
  }
  walk(0, 2 ** 32)
  return ranges
}

function product(choices: readonly (readonly OciArg[])[]): readonly (readonly OciArg[])[] {
  return choices.reduce<readonly (readonly OciArg[])[]>(
    (done, next) => done.flatMap((args) => next.map((arg) => [...args, arg])),
    [[]],
  )
}
