/** One entry of an archive that was judged: it may be written below any directory. */
export interface TarEntry {
  /** Relative, with `/` between its parts, and without empty, `.` and `..` parts. */
  readonly path: string
  readonly kind: 'file' | 'directory' | 'symlink'
  /** The permissions alone. */
  readonly mode: number
  readonly size: number
  readonly modifiedMs: number
  /** Destination of a symbolic link: `..` only at its beginning, and never above the directory of the archive. */
  readonly target: string
}

export const BLOCK = 512
/** The largest size that the field of a plain header can hold, in octal. */
export const MAX_OCTAL_SIZE = 8 ** 11 - 1

export function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK
}
