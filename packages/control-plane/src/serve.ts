import type { AuditSink } from '@airlock/audit'
import { AirlockError, isAirlockError } from '@airlock/contract'
import { deadline, type StopMode, waitFor } from '@airlock/std'
import type { Api } from './api/server.ts'
import type { Alerts } from './monitor/alerts.ts'
import type { Monitor } from './monitor/monitor.ts'
import type { AuditHeads } from './evidence/audit-heads.ts'
import type { Context } from './app/context.ts'
import { requireAtStart } from './evidence/evidence.ts'
import type { Lifecycle } from './app/lifecycle-parts.ts'
import type { NodeLease } from './nodes/node-lease.ts'
import { endAll } from './sweep/shutdown.ts'
import { flushSeen, sweepRows } from './sweep/rows.ts'
import { Sweep } from './sweep/sweep.ts'

/** The other processes start beside us. */
const NEIGHBOURS_MS = 60_000
const RETRY_MS = 100
const END_ALL_MS = 18_000
const FLUSH_MS = 3_000

interface Parts {
  readonly context: Context
  readonly lifecycle: Lifecycle
  readonly monitor: Monitor
  readonly judge: Alerts
  readonly heads: AuditHeads
  readonly api: Api
  /** Hears no door any more. */
  readonly closeDoors: () => void
  readonly lease: NodeLease
}

/** The control plane from its first look at the world to its last word in the evidence. */
export class ControlPlane {
  readonly #parts: Parts
  readonly #sweep: Sweep

  constructor(parts: Parts) {
    this.#parts = parts
    const { context, lifecycle, heads } = parts
    this.#sweep = new Sweep(sweepRows(context, { ...lifecycle, heads }), context.log)
  }

  /** Makes the store and the node agree, then serves. Until then every request is answered `not_ready`. */
  async start(): Promise<void> {
    const { context, lifecycle, monitor, heads, lease } = this.#parts
    lease.start()
    await patiently(() => heads.check())
    await patiently(() => requireAtStart(context.audit, record('server.start')))
    await lifecycle.receipts.payOwed()
    await patiently(() => context.policies.refresh())
    context.policies.start()
    await patiently(() => lifecycle.killswitch.restore())
    await patiently(() => context.guardKeys.refresh())
    await patiently(() => lifecycle.reconciler.adopt())
    context.readiness.serve()
    this.#sweep.start()
    monitor.start()
  }

  /** `end` ends every sandbox; `leave` leaves them to be found again. */
  async stop(mode: StopMode): Promise<void> {
    const { context, lifecycle, monitor, judge, heads, api, lease, closeDoors } = this.#parts
    context.readiness.stop()
    await this.#sweep.stop()
    await lifecycle.jobRunner.stop()
    await monitor.stop()
    await judge.stop()
    await context.policies.stop()
    if (mode === 'end') await endAll(context, lifecycle, AbortSignal.timeout(END_ALL_MS))
    lifecycle.watch.stop()
    lifecycle.stepWatch.stop()
    await api.close()
    await context.webhooks.stop()
    closeDoors()
    context.audit.note({ ...record('server.stop'), payload: { mode } })
    await lifecycle.activity.flush()
    await lifecycle.sessionActivity.flush()
    await flushSeen(context).catch((error: unknown) => context.log.warn('signs of life are not written', { error }))
    await context.audit.flush(FLUSH_MS)
    await lifecycle.receipts
      .flush(() => heads.keep())
      .catch((error: unknown) => context.log.warn('receipts are not written', { error }))
    context.dataPlane.close()
    context.doors.close()
    await lease.release()
    context.killSpill.close()
    await context.store.close()
  }
}

function record(point: 'server.start' | 'server.stop'): Parameters<AuditSink['require']>[0] {
  return { tenant: 'system', actor: 'system', point, status: 'done' }
}

/** Tries again while a neighbour is not up yet, for a bounded time. */
async function patiently(work: () => Promise<void>): Promise<void> {
  let last: unknown
  const attempt = async () => {
    try {
      await work()
      return true
    } catch (error) {
      if (!isAirlockError(error) || !error.retryable) throw error
      last = error
      return undefined
    }
  }
  const signal = deadline(NEIGHBOURS_MS)
  try {
    await waitFor(attempt, { signal, everyMs: RETRY_MS })
  } catch (error) {
    throw signal.aborted ? new AirlockError('not_ready', 'The other processes do not answer.', { cause: last }) : error
  }
}
