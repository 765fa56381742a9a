import { inParallel } from '@airlock/std'
import { findGrantIds, type StoredGrant } from '../store/grants.ts'
import { listLivingOf, listLivingWithMounts, type StoredSandbox } from '../store/sandboxes.ts'
import type { Context } from '../app/context.ts'
import type { End, Termination } from '../sandboxes/terminate.ts'

const AT_ONCE = 8

type World = Pick<Context, 'store' | 'node' | 'log'>

/** Ends sandboxes that see what their agent may no longer see. Each node ends its own. */
export class GrantEnds {
  readonly #context: World
  readonly #termination: Pick<Termination, 'terminate'>
  #looking: Promise<void> | undefined

  constructor(context: World, termination: Pick<Termination, 'terminate'>) {
    this.#context = context
    this.#termination = termination
  }

  /** Resolves when those of this node are gone, or cannot be ended now. */
  async endHoldersOf(grant: StoredGrant, end: End): Promise<void> {
    const { store, node } = this.#context
    const { tenant, agent, id } = grant
    const living = await store.query((db) => listLivingOf(db, { tenant, agent, node: node.id }))
    await this.#end(
      living.filter(({ mounts }) => mounts.some((mount) => mount.grant === id)),
      end,
    )
  }

  /** One look of the sweep: what a crash or another node left is found here. Does not wait for the ends that it starts. */
  async look(): Promise<void> {
    if (this.#looking) return
    const { store, node } = this.#context
    const holders = await store.query((db) => listLivingWithMounts(db, node.id))
    const held = new Set(holders.flatMap(({ mounts }) => mounts.map((mount) => mount.grant)))
    const good = await store.query((db) => findGrantIds(db, [...held]))
    const due = holders.filter(({ mounts }) => mounts.some((mount) => !good.has(mount.grant)))
    if (due.length === 0) return
    this.#looking = this.#end(due, { reason: 'grant_revoked', actor: 'system' }).finally(() => {
      this.#looking = undefined
    })
  }

  /** Waits for the ends under way, however they go. */
  async settled(): Promise<void> {
    await this.#looking
  }

  async #end(sandboxes: readonly StoredSandbox[], end: End): Promise<void> {
    await inParallel(sandboxes, AT_ONCE, async ({ id }) => {
      try {
        await this.#termination.terminate(id, end)
      } catch (error) {
        this.#context.log.warn('a sandbox that holds a grant does not end yet', { sandbox: id, error })
      }
    })
  }
}
