import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** At once, and only if it changed: somebody may be starting from it. */
export function replaceFile(path: string, contents: Uint8Array): void {
  try {
    if (readFileSync(path).equals(contents)) return
  } catch {
    // It is not there yet.
  }
  const written = join(dirname(path), `.${basename(path)}.${process.pid}`)
  writeFileSync(written, contents)
  // Whatever the umask is: sandboxes read some of it as nobody.
  chmodSync(written, 0o644)
  renameSync(written, path)
}
