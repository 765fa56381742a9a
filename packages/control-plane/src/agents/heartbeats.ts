import type { Clock } from '@airlock/std'
import { setAgentSeen, type StoredAgent } from '../store/agents.ts'
import { LatestTimes } from '../store/engine/latest-times.ts'
import type { Store } from '../store/engine/store.ts'

/** When agents were last seen. Every use of a sandbox is a sign of life of its agent, and so is every call of its own key. */
export class Heartbeats {
  readonly #clock: Clock
  readonly #times: LatestTimes

  constructor(of: { readonly store: Store; readonly clock: Clock }) {
    this.#clock = of.clock
    this.#times = new LatestTimes(of.store, async (db, name, at) => {
      const [tenant = '', agent = ''] = name.split('/')
      await setAgentSeen(db, { tenant, agent }, at)
    })
  }

  beat(of: { readonly tenant: string; readonly agent: string }): void {
    this.#times.see(nameOf(of.tenant, of.agent), this.#clock.now())
  }

  /** A key that is bound to agents is theirs: whoever calls with it lives. */
  beatAll(of: { readonly tenant: string; readonly agents: readonly string[] | null }): void {
    for (const agent of of.agents ?? []) this.beat({ tenant: of.tenant, agent })
  }

  /** The agent with its latest sign of life, written or not. */
  current(agent: StoredAgent): StoredAgent {
    const seen = this.#times.get(nameOf(agent.tenant, agent.id))
    return seen === undefined ? agent : { ...agent, lastSeenAt: Math.max(agent.lastSeenAt ?? 0, seen) }
  }

  async flush(): Promise<void> {
    await this.#times.flush()
  }
}

/** Neither name can hold a slash. */
function nameOf(tenant: string, agent: string): string {
  return `${tenant}/${agent}`
}
