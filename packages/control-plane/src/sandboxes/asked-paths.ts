import { posix } from 'node:path'
import { INSIDE, pathBytes } from '@airlock/contract/guest'

/** A path inside a sandbox as a rule sees it: absolute, as the guest will read it, before links. Bytes that are not UTF-8 are U+FFFD. */
export function insidePath(path: string): string {
  return posix.resolve(INSIDE.workspace, (pathBytes(path) ?? path).toString())
}
