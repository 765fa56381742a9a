import { join } from 'node:path'

/** Where things of a sandbox lie on this host. */
export interface Places {
  /** What outlives this process. */
  stateDirOf(id: string): string
  /** What does not outlive the host. */
  runtimeDirOf(id: string): string
  /** Where the socket is that its guest dials. */
  controlDirOf(id: string): string
  /** What holds the directories of all of them. */
  readonly stateRoot: string
  readonly runtimeRoot: string
}

export function placesIn(dirs: { readonly stateDir: string; readonly runtimeDir: string }): Places {
  const stateRoot = join(dirs.stateDir, 'sandboxes')
  const runtimeRoot = join(dirs.runtimeDir, 'sandboxes')
  return {
    stateRoot,
    runtimeRoot,
    stateDirOf: (id) => join(stateRoot, id),
    runtimeDirOf: (id) => join(runtimeRoot, id),
    controlDirOf: (id) => join(runtimeRoot, id, 'control'),
  }
}
