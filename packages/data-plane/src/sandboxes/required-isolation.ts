import { AirlockError, type EffectiveIsolation } from '@airlock/contract'

const NAMESPACES = ['user', 'pid', 'net', 'ipc', 'uts', 'mount', 'cgroup']
const GUEST_CAPABILITIES = new Set(['KILL', 'SETGID', 'SETUID', 'SETPCAP'])

/**
 * Fails closed: a sandbox whose wall, as the kernel shows it, is less than what we promise does not become active,
 * whatever its runtime was told and answered (G2).
 */
export function throwOnWeakIsolation(found: EffectiveIsolation): void {
  const missing = [
    ...NAMESPACES.filter((name) => !found.namespaces.includes(name)).map((name) => `no ${name} namespace`),
    ...(found.network === 'none' ? [] : ['a network device']),
    ...(found.seccomp === 'allowlist' ? [] : ['no system call filter']),
    ...(found.noNewPrivileges ? [] : ['privileges can be gained']),
    ...found.capabilities.filter((name) => !GUEST_CAPABILITIES.has(name)).map((name) => `capability ${name}`),
    ...(found.uidRange.first > 0 ? [] : ['no uid range of its own']),
  ]
  if (missing.length > 0)
    throw new AirlockError(
      'isolation_unavailable',
      `The runtime did not isolate as it was told: ${missing.join(', ')}.`,
    )
}
