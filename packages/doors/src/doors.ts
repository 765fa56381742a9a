import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AirlockError, type DoorName } from '@airlock/contract'
import { KeyedLock } from '@airlock/std'

/** One open door of one sandbox. */
export interface Door {
  /** Lets nobody in any more, cuts who is, and leaves no socket behind. */
  close(): Promise<void>
}

/**
 * Opens one kind of door in a directory that only one sandbox sees: who comes in by its socket is that sandbox, whatever
 * else it says. Takes the place of a socket that an earlier process left.
 */
export type OpenDoor = (at: { readonly sandbox: string; readonly dir: string }) => Promise<Door>

/** Which sandboxes have which doors: as the control plane says, and nothing is remembered over a restart. */
export class Doors {
  readonly #dir: string
  readonly #kinds: Readonly<Record<DoorName, OpenDoor>>
  readonly #open = new Map<string, ReadonlyMap<DoorName, Door>>()
  readonly #turns = new KeyedLock()

  constructor(dir: string, kinds: Readonly<Record<DoorName, OpenDoor>>) {
    this.#dir = dir
    this.#kinds = kinds
  }

  /** All or nothing. Idempotent: doors that are open stay as they are. */
  async open(sandbox: string, names: readonly DoorName[]): Promise<void> {
    await this.#turns.run(sandbox, async () => {
      const doors = new Map(this.#open.get(sandbox))
      try {
        for (const name of names) if (!doors.has(name)) doors.set(name, await this.#openOne(sandbox, name))
        this.#open.set(sandbox, doors)
      } catch (error) {
        for (const [name, door] of doors) if (!this.#open.get(sandbox)?.has(name)) await door.close()
        throw error
      }
    })
  }

  async close(sandbox: string): Promise<void> {
    await this.#turns.run(sandbox, async () => {
      const doors = this.#open.get(sandbox)
      this.#open.delete(sandbox)
      for (const door of doors?.values() ?? []) await door.close()
    })
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map(async (sandbox) => this.close(sandbox)))
  }

  get sandboxes(): readonly string[] {
    return [...this.#open.keys()]
  }

  async #openOne(sandbox: string, name: DoorName): Promise<Door> {
    const dir = join(this.#dir, sandbox, name)
    if (!existsSync(dir)) throw new AirlockError('sandbox_not_found', 'The sandbox has no place for doors.')
    return this.#kinds[name]({ sandbox, dir })
  }
}
