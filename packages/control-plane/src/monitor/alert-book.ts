import type { AlertCounts } from '@airlock/contract'
import { clearAlert, countAlertsOfLiving, insertAlert, listOpenAlerts, type StoredAlert } from '../store/alerts.ts'
import type { Context } from '../app/context.ts'
import type { Queries, Store } from '../store/engine/store.ts'

/** Writes that wait for a store that does not answer; beyond it the oldest are given up. */
const WAITING = 10_000

/** What it needs of the world. */
export type AlertStore = Pick<Context, 'node' | 'log'> & { readonly store: Pick<Store, 'query' | 'transaction'> }
type Write = (db: Queries) => Promise<void>

/** Alerts in the store: written in order behind the one who raises them, each as often as it takes. */
export class AlertBook {
  readonly #world: AlertStore
  #waiting: readonly Write[] = []
  #writing: Promise<void> | undefined

  constructor(world: AlertStore) {
    this.#world = world
  }

  /** What is known from before this process. */
  async read(): Promise<{
    readonly open: readonly StoredAlert[]
    readonly raised: ReadonlyMap<string, AlertCounts>
  }> {
    const { store, node } = this.#world
    const open = await store.query((db) => listOpenAlerts(db, node.id))
    return { open, raised: await store.query((db) => countAlertsOfLiving(db, node.id)) }
  }

  open(alert: StoredAlert): void {
    this.#add((db) => insertAlert(db, alert))
  }

  clear(id: string, at: number): void {
    this.#add((db) => clearAlert(db, id, at))
  }

  /** Writes what waits, unless that is being done; never fails. What the store does not take is tried with the next. */
  async flush(): Promise<void> {
    if (this.#waiting.length > 0) this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
    await this.#writing
  }

  #add(write: Write): void {
    this.#waiting = [...this.#waiting, write].slice(-WAITING)
  }

  async #write(): Promise<void> {
    const { store, log } = this.#world
    const writes = this.#waiting
    this.#waiting = []
    try {
      await store.transaction(async (db) => {
        for (const write of writes) await write(db)
      })
    } catch (error) {
      this.#waiting = [...writes, ...this.#waiting].slice(-WAITING)
      log.warn('alerts are not written yet', { alerts: this.#waiting.length, error })
    }
  }
}
