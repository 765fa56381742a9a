import { AirlockError, type EffectiveIsolation } from '@airlock/contract'

/** What the first process of a sandbox must be seen to have. */
interface Required {
  readonly namespaces: readonly string[]
  /** All that it may hold, in its own user namespace. */
  readonly capabilities: readonly string[]
}

const REQUIRED: Readonly<Record<EffectiveIsolation['tier'], Required>> = {
  standard: {
    namespaces: ['user', 'pid', 'net', 'ipc', 'uts', 'mount', 'cgroup'],
    capabilities: ['KILL', 'SETGID', 'SETUID', 'SETPCAP'],
  },
  // The kernel of gVisor: processes inside are its own invention, and some of its platforms need the host's numbers.
  strict: {
    namespaces: ['user', 'net', 'ipc', 'uts', 'mount', 'cgroup'],
    capabilities: ['SYS_CHROOT', 'SYS_ADMIN', 'SYS_PTRACE'],
  },
}

/**
 * Fails closed: a sandbox whose wall, as the kernel shows it, is less than what we promise does not become active,
 * whatever its runtime was told and answered (G2). `asked` is the tier of its permit.
 */
export function throwOnWeakIsolation(found: EffectiveIsolation, asked: EffectiveIsolation['tier']): void {
  const { namespaces, capabilities } = REQUIRED[asked]
  const missing = [
    ...(found.tier === asked ? [] : [`the tier "${found.tier}"`]),
    ...namespaces.filter((name) => !found.namespaces.includes(name)).map((name) => `no ${name} namespace`),
    ...(found.network === 'none' ? [] : ['a network device']),
    ...(found.seccomp === 'allowlist' ? [] : ['no system call filter']),
    ...(found.noNewPrivileges ? [] : ['privileges can be gained']),
    ...found.capabilities.filter((name) => !capabilities.includes(name)).map((name) => `capability ${name}`),
    ...(found.uidRange.first > 0 ? [] : ['no uid range of its own']),
    ...(found.root === 'read-only' ? [] : ['a writable root']),
    ...(found.unmasked?.map((path) => `${path} is not masked`) ?? ['masks that nobody looked at']),
    ...(found.mountFaults ?? ['mounts that nobody looked at']),
    ...(found.probe
      ? found.probe.passed.map((call) => `the call ${call} works`)
      : ['forbidden calls that nobody tried']),
  ]
  if (missing.length > 0)
    throw new AirlockError(
      'isolation_unavailable',
      `The runtime did not isolate as it was told: ${missing.join(', ')}.`,
    )
}
