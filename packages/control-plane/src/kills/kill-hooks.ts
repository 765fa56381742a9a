import type { KillReport } from '@airlock/contract'
import { deadline, type Log, untilAborted } from '@airlock/std'
import type { Store } from '../store/engine/store.ts'
import { listWebhookTenants } from '../store/webhooks.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'

const HOOK_MS = 10_000

/** Told of every kill once it has run. It can neither stop nor delay one: what it throws is logged. */
export interface KillHook {
  readonly name: string
  /** `of` is the same report with what one tenant lost. */
  onKill(report: KillReport, of: ReportOf): Promise<void>
}

type ReportOf = (tenant: string) => KillReport

export class KillHooks {
  readonly #hooks: readonly KillHook[]
  readonly #log: Log

  constructor(hooks: readonly KillHook[], log: Log) {
    this.#hooks = hooks
    this.#log = log
  }

  /** Does not wait for any of them. */
  tell(report: KillReport, of: ReportOf): void {
    for (const hook of this.#hooks)
      void untilAborted(hook.onKill(report, of), deadline(HOOK_MS)).catch((error: unknown) =>
        this.#log.warn('a hook of a kill failed', { hook: hook.name, kill: report.id, error }),
      )
  }
}

/** The webhooks of the tenant that it is about; of a kill of everything all tenants, each with what it lost itself. */
export function webhookHook(webhooks: Pick<Webhooks, 'send'>, store: Store): KillHook {
  return {
    name: 'webhooks',
    onKill: async (report, of) => {
      const { tenant } = report
      const tenants = tenant === null ? await store.query(listWebhookTenants) : [tenant]
      for (const one of tenants) webhooks.send(one, 'kill', payloadOf(tenant === null ? of(one) : report))
    },
  }
}

function payloadOf(report: KillReport): Readonly<Record<string, unknown>> {
  const { id, scope, tenant, target, reason, at, slowestMs, unverified } = report
  const sandboxes = report.sandboxes.map((one) => ({ id: one.id, verified: one.verified }))
  return { id, scope, tenant, target, reason, at, sandboxes, slowestMs, unverified }
}
