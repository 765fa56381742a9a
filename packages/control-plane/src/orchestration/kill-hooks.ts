import type { KillReport } from '@airlock/contract'
import { deadline, type Log } from '@airlock/std'
import { untilAborted } from './until-aborted.ts'
import type { Webhooks } from './webhooks.ts'

const HOOK_MS = 10_000

/** Told of every kill once it has run. It can neither stop nor delay one: what it throws is logged. */
export interface KillHook {
  readonly name: string
  onKill(report: KillReport): Promise<void>
}

export class KillHooks {
  readonly #hooks: readonly KillHook[]
  readonly #log: Log

  constructor(hooks: readonly KillHook[], log: Log) {
    this.#hooks = hooks
    this.#log = log
  }

  /** Does not wait for any of them. */
  tell(report: KillReport): void {
    for (const hook of this.#hooks)
      void untilAborted(hook.onKill(report), deadline(HOOK_MS)).catch((error: unknown) =>
        this.#log.warn('a hook of a kill failed', { hook: hook.name, kill: report.id, error }),
      )
  }
}

/** The webhooks of the tenant that it is about. A kill of everything is for who runs the server, by a hook of its own. */
export function webhookHook(webhooks: Pick<Webhooks, 'send'>): KillHook {
  return {
    name: 'webhooks',
    onKill: async (report) => {
      const { id, scope, tenant, target, reason, at, slowestMs, unverified } = report
      if (tenant === null) return
      const sandboxes = report.sandboxes.map((one) => ({ id: one.id, verified: one.verified }))
      webhooks.send(tenant, 'kill', { id, scope, tenant, target, reason, at, sandboxes, slowestMs, unverified })
    },
  }
}
