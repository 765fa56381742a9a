import type { GuestBoot } from '@airlock/contract/guest'

export type User = GuestBoot['user']

/**
 * Does `work` with the rights of user code: the kernel, not we, decides what it may touch. Preconditions: `work` is
 * synchronous, for credentials belong to the whole process.
 */
export function asUser<T>(user: User, work: () => T): T {
  process.setegid?.(user.gid)
  try {
    process.seteuid?.(user.uid)
    return work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
}
