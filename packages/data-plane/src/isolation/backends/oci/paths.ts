import { AirlockError, type DoorName } from '@airlock/contract'
import { join } from 'node:path'

/** Where the backend keeps things. */
export interface Places {
  readonly stateDir: string
  readonly runtimeDir: string
}

/** Where the launcher puts sources together, in its own mount namespace; on the host it stays an empty directory. */
export const STAGE = '/run/airlock-stage'

/** The parts of the stage. Bind sources must not be below a directory that the sandbox's root cannot pass. */
export const STAGED = {
  disk: `${STAGE}/disk`,
  rootfs: `${STAGE}/rootfs`,
  program: `${STAGE}/program`,
  control: `${STAGE}/control`,
  grants: `${STAGE}/grants`,
  proc: `${STAGE}/proc`,
} as const

/** Where an image's own overlay is. */
export function stagedOverlay(name: string): string {
  return `${STAGE}/${name}`
}

/** Where a door's directory is. */
export function stagedDoor(name: DoorName): string {
  return `${STAGE}/door-${name}`
}

/** Everything of one sandbox on disk, named by its id. */
export interface SandboxPaths {
  readonly dir: string
  readonly bundle: string
  readonly disk: string
  /** What it sees instead of some files of /proc. */
  readonly proc: string
  /** What the runtime remembers of it. */
  readonly runtimeState: string
  readonly pidFile: string
  readonly launchLog: string
  readonly runtimeLog: string
}

export function sandboxesDir(places: Places): string {
  return join(places.stateDir, 'sandboxes')
}

/** An id becomes part of paths that are removed: it must be a plain name. */
export function isSandboxName(id: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,62}$/u.test(id)
}

export function pathsOf(places: Places, id: string): SandboxPaths {
  if (!isSandboxName(id)) throw new AirlockError('invalid_request', 'That is not a sandbox id.')
  const dir = join(sandboxesDir(places), id)
  return {
    dir,
    bundle: join(dir, 'bundle'),
    disk: join(dir, 'disk.img'),
    proc: join(dir, 'proc'),
    runtimeState: join(places.runtimeDir, 'runtime', id),
    pidFile: join(dir, 'init.pid'),
    launchLog: join(dir, 'launch.log'),
    runtimeLog: join(dir, 'runtime.log'),
  }
}
