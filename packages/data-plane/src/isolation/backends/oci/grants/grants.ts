import { AirlockError, type FoundPath, foundPath, type LookAtPathRequest, type PermitMount } from '@airlock/contract'
import { INSIDE } from '@airlock/contract/guest'
import type { HostPaths } from '../../../host-paths.ts'
import { STAGE, STAGED, type Places } from '../paths.ts'
import { runTool } from '../run-tool.ts'
import { findSensitive } from './sensitive.ts'

/** How it and the launcher end when something may not be mounted. */
export const REFUSED_EXIT = 78
/** Any host uid of a sandbox will do to see whether owners can be mapped. */
const SOME_USER = 0x70_01_00_00

/** What of this host sandboxes may see. */
export class OciHostPaths implements HostPaths {
  readonly #places: Places
  readonly #program: string

  /** `program` looks at what is granted and mounts it, both with the same eyes. */
  constructor(places: Places, program: string) {
    this.#places = places
    this.#program = program
  }

  async look(asked: LookAtPathRequest): Promise<FoundPath> {
    const grant = { ...asked, allowed: [], blocked: [], isMaskable: isInRoot(asked) }
    const request = JSON.stringify({ user: SOME_USER, ...findSensitive(this.#places), grants: [grant] })
    const { exitCode, stdout, stderr } = await runTool('python3', ['-I', '-S', this.#program, 'look', request])
    if (exitCode === REFUSED_EXIT) throw new AirlockError('grant_refused', stdout.trim())
    if (exitCode !== 0)
      throw new AirlockError('isolation_unavailable', 'Host paths cannot be granted here.', { cause: stderr })
    return foundPath.parse(JSON.parse(stdout))
  }

  /** What the launcher has to mount, for the user that has this host uid. */
  request(mounts: readonly PermitMount[], user: number): string {
    const root = `${STAGED.rootfs}${INSIDE.grants}`
    const grants = mounts.map((mount, number) => {
      return { ...mount, place: placeOf(mount, number), isMaskable: isInRoot(mount) }
    })
    const nothing = `${STAGE}/nothing`
    return JSON.stringify({ user, root, nothing, ...findSensitive(this.#places), grants })
  }
}

export interface GrantBind {
  readonly source: string
  readonly destination: string
  readonly isWritable: boolean
}

/**
 * What is left to the runtime: what goes onto its own mounts. The rest is in the root file system by then, for a runtime may
 * bind a directory without what is mounted in it, and a view is made of many mounts.
 */
export function grantBinds(mounts: readonly PermitMount[]): readonly GrantBind[] {
  return mounts.flatMap((mount, number) => {
    const bind = { source: placeOf(mount, number), destination: mount.target, isWritable: mount.mode === 'rw' }
    return isInRoot(mount) ? [] : [bind]
  })
}

function placeOf(mount: PermitMount, number: number): string {
  return isInRoot(mount) ? `${STAGED.rootfs}${mount.target}` : `${STAGED.grants}/${number}`
}

/** What is mounted on it is seen only there: a runtime binds the others alone. */
function isInRoot({ target }: Pick<PermitMount, 'target'>): boolean {
  return target.startsWith(`${INSIDE.grants}/`)
}
