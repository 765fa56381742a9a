import type { Question } from '@airlock/contract'
import { inParallel } from '@airlock/std'
import type { Context } from '../app/context.ts'
import type { Governed } from '../evidence/evidence.ts'
import { listModelCallsOfNode, type StoredModelCall } from '../store/model-calls.ts'

type World = Pick<Context, 'store' | 'node' | 'guardian' | 'doorNews' | 'log'>

/** Calls that are judged again at once. */
const JUDGED_AT_ONCE = 16

/** Calls under way are judged again when rules change, and those that are denied by then are cut at the doors. */
export class OpenCallJudge {
  readonly #world: World
  /** Calls that a person let pass in this life: that rules still ask changes nothing. */
  readonly #approved = new Set<string>()
  /** Counts changes of the rules. */
  #revision = 0

  constructor(world: World) {
    this.#world = world
    world.doorNews.subscribe(({ what }) => {
      if (what === 'policy')
        void this.#judgeAll().catch((error: unknown) => world.log.error('could not judge open model calls', { error }))
    })
  }

  get revision(): number {
    return this.#revision
  }

  opened(id: string, { decision }: Governed): void {
    if (decision.rules.some(({ policy }) => policy === 'approval')) this.#approved.add(id)
  }

  ended(id: string): void {
    this.#approved.delete(id)
  }

  /** Whether rules deny a call by now. Fails closed: what cannot be judged is denied. */
  async isDenied(call: Pick<StoredModelCall, 'id' | 'tenant' | 'agent' | 'sandbox' | 'model'>): Promise<boolean> {
    const { guardian, log } = this.#world
    try {
      const { effect } = (await guardian.explain(questionOf(call))).decision
      return effect === 'deny' || (effect === 'ask' && !this.#approved.has(call.id))
    } catch (error) {
      log.warn('could not judge an open model call again; cutting it', { call: call.id, error })
      return true
    }
  }

  async #judgeAll(): Promise<void> {
    const { store, node, doorNews } = this.#world
    this.#revision += 1
    const denied: StoredModelCall[] = []
    await inParallel(await store.query((db) => listModelCallsOfNode(db, node.id)), JUDGED_AT_ONCE, async (call) => {
      if (await this.isDenied(call)) denied.push(call)
    })
    for (const [sandbox, cut] of Map.groupBy(denied, (call) => call.sandbox))
      doorNews.publish({ what: 'cut', sandbox, connections: cut.map(({ id }) => id) })
  }
}

function questionOf({
  tenant,
  agent,
  sandbox,
  model,
}: Pick<StoredModelCall, 'tenant' | 'agent' | 'sandbox' | 'model'>): Question {
  const who = { tenant, agent, sandbox, actor: `sandbox:${sandbox}`, role: 'sandbox' as const }
  return { point: 'model.call', ...who, operation: { kind: 'model', model } }
}
