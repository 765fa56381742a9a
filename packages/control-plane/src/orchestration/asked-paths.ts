import { posix } from 'node:path'
import { INSIDE } from '@airlock/contract/guest'

/** A path inside a sandbox as a rule sees it: absolute, as the guest will read it, before links. */
export function insidePath(path: string): string {
  return posix.resolve(INSIDE.workspace, path)
}
