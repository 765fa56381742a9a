import { statSync } from 'node:fs'
import { AirlockError } from '@airlock/contract'

/**
 * Fails closed: giving up root takes from a process that others may read its memory, and that it leaves a core. The kernel
 * shows this by giving what is in `/proc` to root. A host can be told to do without.
 */
export function throwOnReadable(): void {
  if (statSync('/proc/self/environ').uid === 0) return
  throw new AirlockError(
    'config_invalid',
    'This kernel lets processes that gave up root be dumped, and keys with them.',
    {
      hint: 'Run "sysctl fs.suid_dumpable=0" or set it to 2.',
    },
  )
}
