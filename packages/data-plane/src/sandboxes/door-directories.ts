import { DOOR_SOCKETS, DOORS, type DoorName } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { chmod, chown, mkdir, readdir, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** A directory of the host in which the doors process listens for one sandbox. */
export interface DoorDirectory {
  readonly name: DoorName
  readonly source: string
}

/**
 * Where the sockets of doors lie: `<dir>/<sandbox>/<door>/`. The directory of a door belongs to the process that listens in
 * it, everything above to root: so that process, which meets hostile bytes, cannot have us mount or remove anything else.
 */
export class DoorDirectories {
  readonly #dir: string
  readonly #uid: number | null
  readonly #log: Log

  /** `uid` is that of the doors process; null keeps our own. */
  constructor({ dir, uid, log }: { readonly dir: string; readonly uid: number | null; readonly log: Log }) {
    this.#dir = dir
    this.#uid = uid
    this.#log = log
  }

  async make(sandbox: string, names: readonly DoorName[]): Promise<readonly DoorDirectory[]> {
    const doors = names.map((name) => ({ name, source: join(this.#dir, sandbox, name) }))
    for (const { source } of doors) {
      await mkdir(source, { recursive: true, mode: 0o711 })
      await chmod(join(this.#dir, sandbox), 0o711)
      await chmod(source, 0o755)
      if (this.#uid !== null) await chown(source, this.#uid, this.#uid)
    }
    return doors
  }

  /**
   * Idempotent. By names that we know and never by what is found: nothing planted there is followed. What cannot be removed
   * so stays, and holds up no end: it is nobody's any more.
   */
  async remove(sandbox: string): Promise<void> {
    try {
      for (const name of DOORS) {
        await unlink(join(this.#dir, sandbox, name, DOOR_SOCKETS[name])).catch(isGone)
        await rmdir(join(this.#dir, sandbox, name)).catch(isGone)
      }
      await rmdir(join(this.#dir, sandbox)).catch(isGone)
    } catch (error) {
      this.#log.error('the place of a door has something in it that is not ours', { sandbox, error })
    }
  }

  /** After a crash: those of sandboxes that are no more. */
  async removeAllBut(keep: ReadonlySet<string>): Promise<void> {
    for (const sandbox of await readdir(this.#dir).catch(() => [])) if (!keep.has(sandbox)) await this.remove(sandbox)
  }
}

function isGone(error: unknown): void {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ENOENT') throw error
}
