import { isAirlockError } from '@airlock/contract'
import { sleep } from '@airlock/std'
import type { Activity } from '../sandboxes/activity.ts'
import type { AgentEnds } from '../agents/agent-ends.ts'
import type { AuditHeads } from '../evidence/audit-heads.ts'
import { billLiving } from '../spend/billing.ts'
import type { BudgetEnds } from '../spend/budget-ends.ts'
import type { Asks } from '../app/asks.ts'
import type { Connections } from '../doors/connections.ts'
import type { Context } from '../app/context.ts'
import type { GrantEnds } from '../agents/grant-ends.ts'
import type { Killswitch } from '../kills/killswitch.ts'
import { LostNodes } from '../nodes/lost-nodes.ts'
import type { Receipts } from '../evidence/receipts.ts'
import type { Reconciler } from './reconcile.ts'
import type { Templates } from '../templates/templates.ts'

const EVERY_MS = 1000
const HEADS_EVERY = 5
const LOST_EVERY = 10
const OWED_EVERY = 60
const SEEN_EVERY = 10
const PRUNE_EVERY = 600
const BILL_EVERY = 60
const KEYS_EVERY = 10

interface Parts {
  readonly reconciler: Reconciler
  readonly activity: Activity
  readonly sessionActivity: Activity
  readonly receipts: Receipts
  readonly heads: AuditHeads
  readonly agentEnds: AgentEnds
  readonly grantEnds: GrantEnds
  readonly budgetEnds: BudgetEnds
  readonly killswitch: Killswitch
  readonly asks: Asks
  readonly connections: Connections
  readonly templates: Templates
}

/** Looks at everything once a second: what is due ends, what was put off is written. Nothing is kept only in timers. */
export class Sweep {
  readonly #context: Context
  readonly #parts: Parts
  readonly #lostNodes: LostNodes
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
    this.#lostNodes = new LostNodes(context)
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  /** Who was seen, and which keys were used. */
  async flushSeen(): Promise<void> {
    await this.#context.heartbeats.flush()
    await this.#context.keyUses.flush()
  }

  async #run(): Promise<void> {
    for (let round = 1; !this.#stop.signal.aborted; round++) {
      await this.#attempt('kills', () => this.#parts.killswitch.look())
      await this.#look()
      if (this.#context.readiness.isNodeHeld) await this.#lookAtOwn(round)
      if (round % KEYS_EVERY === 0) await this.#attempt('keys', () => this.#context.guardKeys.refresh())
      if (round % SEEN_EVERY === 0) await this.#attempt('signs of life', () => this.flushSeen())
      await this.#attempt('uses', () => this.#parts.activity.flush())
      await this.#attempt('uses of sessions', () => this.#parts.sessionActivity.flush())
      if (round % HEADS_EVERY === 0)
        await this.#attempt('receipts', () => this.#parts.receipts.flush(() => this.#parts.heads.keep()))
      if (round % OWED_EVERY === 0) await this.#attempt('owed records', () => this.#parts.receipts.payOwed())
      if (round % LOST_EVERY === 0) await this.#attempt('lost nodes', () => this.#lostNodes.look())
      await this.#attempt('approvals', () => this.#parts.asks.answers.look())
      if (round % PRUNE_EVERY === 0) await this.#attempt('images', () => this.#parts.templates.prune())
      // Woken early only by the stop, which the loop sees.
      await sleep(EVERY_MS, this.#stop.signal).catch(() => undefined)
    }
  }

  /** What is only for the node that has the sandboxes. */
  async #lookAtOwn(round: number): Promise<void> {
    await this.#attempt('agents', () => this.#parts.agentEnds.look())
    await this.#attempt('grants', () => this.#parts.grantEnds.look())
    await this.#attempt('doors', () => this.#parts.connections.look())
    if (round % BILL_EVERY !== 0) return
    await this.#attempt('usage', () => billLiving(this.#context))
    await this.#attempt('budgets', () => this.#parts.budgetEnds.look())
  }

  async #look(): Promise<void> {
    if (!this.#context.readiness.isNodeHeld) return
    try {
      await this.#parts.reconciler.look()
    } catch (error) {
      if (isAirlockError(error) && error.code === 'data_plane_unavailable') this.#context.readiness.nodeIsSilent()
      this.#context.log.warn('the sweep could not look', { error })
    }
  }

  async #attempt(what: string, write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (error) {
      this.#context.log.warn('the sweep could not write', { what, error })
    }
  }
}
