import { AirlockError } from '@airlock/contract'
import { existsSync } from 'node:fs'
import { throwOnMissingCapabilities } from './rights.ts'

/** Fails closed: what the wall needs of this host. */
export function throwUnlessCapable(): void {
  if (process.platform !== 'linux') throw new AirlockError('isolation_unavailable', 'Sandboxes need Linux.')
  if (process.getuid?.() !== 0) throw new AirlockError('isolation_unavailable', 'Sandboxes need root on this host.')
  throwOnMissingCapabilities()
  if (!existsSync('/proc/sys/kernel/seccomp/actions_avail'))
    throw new AirlockError('isolation_unavailable', 'The kernel has no system call filter (seccomp).')
}
