import type { GuestError, GuestErrorCode } from '@airlock/contract/guest'

/** A request that could not be done, with the code that the host hears. */
export class GuestFailure extends Error {
  readonly code: GuestErrorCode

  constructor(code: GuestErrorCode, message: string) {
    super(message)
    this.name = 'GuestFailure'
    this.code = code
  }
}

const MESSAGE_LENGTH = 1000

export function toGuestError(error: unknown): GuestError {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_LENGTH)
  if (error instanceof GuestFailure) return { code: error.code, message }
  return { code: BY_ERRNO[errnoOf(error)] ?? 'internal', message }
}

export function errnoOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return typeof error.code === 'string' ? error.code : ''
}

const BY_ERRNO: Readonly<Record<string, GuestErrorCode>> = {
  ENOENT: 'file_not_found',
  EEXIST: 'file_exists',
  ENOTDIR: 'not_a_directory',
  EISDIR: 'is_a_directory',
  ERR_FS_EISDIR: 'is_a_directory',
  ENOTEMPTY: 'directory_not_empty',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  EROFS: 'permission_denied',
  EBUSY: 'permission_denied',
  ETXTBSY: 'permission_denied',
  /** A FIFO without a reader, or a socket. */
  ENXIO: 'permission_denied',
  ENAMETOOLONG: 'invalid_path',
  ELOOP: 'invalid_path',
  EINVAL: 'invalid_path',
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
  EFBIG: 'disk_full',
  /** The host could not write it. */
  EIO: 'disk_failed',
  E2BIG: 'invalid_request',
}
