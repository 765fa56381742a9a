import type { EffectiveIsolation } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { throwOnWeakIsolation } from './required-isolation.ts'

const STANDARD: EffectiveIsolation = {
  backend: 'oci',
  runtime: 'crun 1.8.1',
  tier: 'standard',
  namespaces: ['user', 'pid', 'net', 'ipc', 'uts', 'mount', 'cgroup'],
  network: 'none',
  seccomp: 'allowlist',
  noNewPrivileges: true,
  capabilities: ['KILL', 'SETGID', 'SETUID', 'SETPCAP'],
  uidRange: { first: 1_879_179_264, count: 65_536 },
  cgroup: 'v2',
  limits: [],
  root: 'read-only',
  unmasked: [],
  mountFaults: [],
  probe: { tried: 70, passed: [] },
}

const STRICT: EffectiveIsolation = {
  ...STANDARD,
  runtime: 'runsc 1',
  tier: 'strict',
  namespaces: STANDARD.namespaces.filter((name) => name !== 'pid'),
  capabilities: ['SYS_CHROOT', 'SYS_ADMIN'],
  uidRange: { first: 65_534, count: 1 },
}

const WHOLE = { standard: STANDARD, strict: STRICT } as const

/** Everything that is required, each with one thing that makes it less and the name by which that is told. */
const WEAKER: readonly (readonly [what: string, change: Partial<EffectiveIsolation>, named: string])[] = [
  ['no system call filter', { seccomp: 'none' }, 'no system call filter'],
  ['a device beside loopback', { network: 'host' }, 'a network device'],
  ['a network by policy', { network: 'policy-only' }, 'a network device'],
  ['privileges by programs', { noNewPrivileges: false }, 'privileges can be gained'],
  ['a capability more', { capabilities: ['NET_ADMIN'] }, 'capability NET_ADMIN'],
  ['one that has no name here', { capabilities: ['CAP_40'] }, 'capability CAP_40'],
  ['root of the host', { uidRange: { first: 0, count: 65_536 } }, 'no uid range of its own'],
  ['a writable root', { root: 'writable' }, 'a writable root'],
  ['a root that nobody looked at', { root: null }, 'a writable root'],
  ['a path that shows', { unmasked: ['/proc/keys'] }, '/proc/keys is not masked'],
  ['masks that nobody looked at', { unmasked: null }, 'masks that nobody looked at'],
  ['another mount', { mountFaults: ['a mount at /tmp/shared that nobody asked for'] }, 'a mount at /tmp/shared'],
  ['mounts that nobody looked at', { mountFaults: null }, 'mounts that nobody looked at'],
  ['a call that gets through', { probe: { tried: 70, passed: ['keyctl', 'unshare'] } }, 'the call keyctl works'],
  ['calls that nobody tried', { probe: null }, 'forbidden calls that nobody tried'],
]

describe.each(['standard', 'strict'] as const)('the %s tier', (tier) => {
  const whole = WHOLE[tier]
  const refused = (named: string) =>
    expect.objectContaining({ code: 'isolation_unavailable', message: expect.stringContaining(named) })

  it('takes what is as it must be', () => {
    expect(throwOnWeakIsolation(whole, tier)).toBeUndefined()
  })

  it.each(whole.namespaces)('refuses a sandbox without a %s namespace, by that name', (missing) => {
    const found = { ...whole, namespaces: whole.namespaces.filter((name) => name !== missing) }
    expect(() => throwOnWeakIsolation(found, tier)).toThrow(refused(`no ${missing} namespace`))
  })

  it.each(WEAKER)('refuses %s, by name', (_what, change, named) => {
    expect(() => throwOnWeakIsolation({ ...whole, ...change }, tier)).toThrow(refused(named))
  })

  it('refuses what is of the other tier', () => {
    const other = tier === 'standard' ? 'strict' : 'standard'
    expect(() => throwOnWeakIsolation(WHOLE[other], tier)).toThrow(refused(`the tier "${other}"`))
  })

  it('names all that is missing at once', () => {
    const found: EffectiveIsolation = { ...whole, seccomp: 'none', root: 'writable' }
    expect(() => throwOnWeakIsolation(found, tier)).toThrow(refused('no system call filter, a writable root'))
  })
})

it('holds the standard tier, and not the strict one, to a pid namespace', () => {
  expect(STRICT.namespaces).not.toContain('pid')
  expect(() => throwOnWeakIsolation({ ...STRICT, tier: 'standard' }, 'standard')).toThrow('no pid namespace')
})
