import { type GuestError, type GuestErrorCode, pathText } from '@airlock/contract/guest'

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
  return { code: BY_ERRNO[errnoOf(error)] ?? 'internal', message: sentenceOf(error) ?? message }
}

/** Of the kernel's refusal of a path, for people. Undefined where its own words are all there is. */
function sentenceOf(error: unknown): string | undefined {
  const path = pathOf(error)?.slice(0, MESSAGE_LENGTH - 100)
  return path === undefined ? undefined : SENTENCES[errnoOf(error)]?.(path)
}

function pathOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('path' in error)) return undefined
  const { path } = error
  if (typeof path === 'string') return path
  return Buffer.isBuffer(path) ? pathText(path) : undefined
}

const SENTENCES: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `There is no file or directory ${path} in the sandbox.`,
  ENOTDIR: (path) => `A part of ${path} is not a directory.`,
  EISDIR: (path) => `${path} is a directory.`,
  EEXIST: (path) => `${path} is there already.`,
  ENOTEMPTY: (path) => `The directory ${path} is not empty.`,
  EACCES: (path) => `The user of the sandbox may not do that to ${path}.`,
  EROFS: (path) => `${path} is read-only: write to /workspace, /home/user or /tmp.`,
  ENOSPC: (path) => `There is no space left for ${path}.`,
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
