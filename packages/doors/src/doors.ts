import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AirlockError, type DoorName, type DoorConfig, type DoorsChange, type OpenDoors } from '@airlock/contract'
import { KeyedLock } from '@airlock/std'

export type ConfigOf<N extends DoorName> = Extract<DoorConfig, { door: N }>

/** `lost`: the control plane is away, so what it takes back is not heard. */
export type DoorChange = DoorsChange['what'] | 'lost'

/** One open door of one sandbox. */
export interface Door<C extends DoorConfig = DoorConfig> {
  /** Takes the place of the configuration before, also for connections that are open. */
  configure(config: C): void
  /** What was decided before does not hold any more. */
  changed(what: DoorChange): void
  /** Ends these connections to hosts, or calls of models or tools. Absent for a door that has none. */
  cut?(connections: readonly string[]): void
  /** Lets nobody in any more, cuts connections, and leaves no socket behind. */
  close(): Promise<void>
}

/**
 * Opens one kind of door in a directory that only one sandbox sees: whatever comes in by its socket is that sandbox, whatever
 * else it says. Takes the place of a socket that an earlier process left.
 */
export type OpenDoor<C extends DoorConfig = DoorConfig> = (at: {
  readonly sandbox: string
  readonly dir: string
  readonly config: C
}) => Promise<Door<C>>

type Kinds = { readonly [N in DoorName]: OpenDoor<ConfigOf<N>> }

interface Opened {
  readonly config: DoorConfig
  readonly door: Door
}

/** Which sandboxes have which doors: as the control plane says, and nothing is remembered over a restart. */
export class Doors {
  readonly #dir: string
  readonly #kinds: Kinds
  readonly #open = new Map<string, ReadonlyMap<DoorName, Opened>>()
  readonly #turns = new KeyedLock()

  constructor(dir: string, kinds: Kinds) {
    this.#dir = dir
    this.#kinds = kinds
  }

  /**
   * Opens exactly these doors: replaces the configuration of an open door when its version differs, and closes a door that is
   * not listed. Connections of a door that stays are not cut. When one cannot be opened, everything is as before.
   */
  async open(sandbox: string, configs: readonly DoorConfig[]): Promise<void> {
    await this.#turns.run(sandbox, async () => {
      const before = this.#open.get(sandbox) ?? new Map<DoorName, Opened>()
      const fresh = await this.#openAll(
        sandbox,
        configs.filter(({ door }) => !before.has(door)),
      )
      const after = new Map(configs.flatMap((config) => kept(before.get(config.door), config)))
      this.#open.set(sandbox, new Map([...after, ...fresh]))
      for (const [name, { door }] of before) if (!after.has(name)) await door.close()
    })
  }

  async close(sandbox: string): Promise<void> {
    await this.#turns.run(sandbox, async () => {
      const doors = this.#open.get(sandbox)
      this.#open.delete(sandbox)
      for (const { door } of doors?.values() ?? []) await door.close()
    })
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map(async (sandbox) => this.close(sandbox)))
  }

  /** Tells the doors of the sandboxes that the change is about. */
  changed({ what, sandboxes }: DoorsChange): void {
    for (const sandbox of sandboxes ?? this.#open.keys())
      for (const { door } of this.#open.get(sandbox)?.values() ?? []) door.changed(what)
  }

  cut(sandbox: string, connections: readonly string[]): void {
    for (const { door } of this.#open.get(sandbox)?.values() ?? []) door.cut?.(connections)
  }

  /** The control plane is away: what it takes back is not heard. */
  lost(): void {
    for (const doors of this.#open.values()) for (const { door } of doors.values()) door.changed('lost')
  }

  list(): readonly OpenDoors[] {
    return [...this.#open].map(([sandbox, doors]) => ({
      sandbox,
      doors: [...doors.values()].map(({ config: { door, version } }) => ({ door, version })),
    }))
  }

  /** All or nothing. */
  async #openAll(sandbox: string, configs: readonly DoorConfig[]): Promise<ReadonlyMap<DoorName, Opened>> {
    const opened = new Map<DoorName, Opened>()
    try {
      for (const config of configs) opened.set(config.door, { config, door: await this.#openOne(sandbox, config) })
      return opened
    } catch (error) {
      for (const { door } of opened.values()) await door.close()
      throw error
    }
  }

  async #openOne(sandbox: string, config: DoorConfig): Promise<Door> {
    const dir = join(this.#dir, sandbox, config.door)
    if (!existsSync(dir)) throw new AirlockError('sandbox_not_found', 'The sandbox has no place for doors.')
    switch (config.door) {
      case 'control':
        return this.#kinds.control({ sandbox, dir, config })
      case 'llm':
        return this.#kinds.llm({ sandbox, dir, config })
      case 'egress':
        return this.#kinds.egress({ sandbox, dir, config })
      case 'broker':
        return this.#kinds.broker({ sandbox, dir, config })
    }
  }
}

function kept(opened: Opened | undefined, config: DoorConfig): readonly (readonly [DoorName, Opened])[] {
  if (!opened) return []
  if (opened.config.version !== config.version) opened.door.configure(config)
  return [[config.door, { door: opened.door, config }]]
}
