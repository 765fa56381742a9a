import { readFileSync } from 'node:fs'
import { unescapeOctal } from './groups/hierarchies.ts'
import { isSystemError } from './system-error.ts'

/** One mount, as the kernel tells it of a mount namespace. */
export interface Mount {
  /** `major:minor` of the file system. */
  readonly device: string
  /** Seen from the root of who was asked about. */
  readonly mountPoint: string
  readonly type: string
  /** `ro`, `nosuid` and the like, of this mount and not of its file system. */
  readonly flags: ReadonlySet<string>
}

/** What a process has mounted; nothing when it is gone. */
export function mountsOf(pid: number | 'self'): readonly Mount[] {
  try {
    return parseMounts(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'))
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ESRCH', 'EINVAL')) return []
    throw error
  }
}

export function parseMounts(mountinfo: string): readonly Mount[] {
  return mountinfo
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [before = '', after = ''] = line.split(' - ')
      const [, , device = '', , mountPoint = '', options = ''] = before.split(' ')
      const [type = ''] = after.split(' ')
      return { device, mountPoint: unescapeOctal(mountPoint), type, flags: new Set(options.split(',')) }
    })
}

/** Mounts of the host that come along with what is bound, and that a sandbox may see only with all of these flags. */
export function exposedBelow(mounts: readonly Mount[], sources: readonly string[]): readonly string[] {
  const isBelow = (path: string) => sources.some((source) => path.startsWith(`${source}/`))
  return mounts
    .filter(({ mountPoint, flags }) => isBelow(mountPoint) && !CLOSED.every((flag) => flags.has(flag)))
    .map(({ mountPoint }) => mountPoint)
}

const CLOSED = ['ro', 'nosuid', 'nodev'] as const
