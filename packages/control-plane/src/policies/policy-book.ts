import {
  AirlockError,
  type Decision,
  type Effect,
  isAirlockError,
  type MatchedRule,
  type PolicyDocument,
  type Question,
} from '@airlock/contract'
import { BUILTIN, BUILTIN_VERSION, type CompiledPolicy, compilePolicy, evaluate, mergeDecisions } from '@airlock/policy'
import type { Log } from '@airlock/std'
import {
  listLatest,
  PLATFORM,
  policyRevision,
  type PolicyHead,
  storedDocument,
  type StoredPolicy,
} from '../store/policies.ts'
import type { Store } from '../store/engine/store.ts'

/** Another server that shares the store has written at most this long ago what we do not know yet, and what it takes to read it. */
const LOOK_EVERY_MS = 1000

/** A policy in force: compiled, or why it cannot be. */
export interface Bound {
  readonly scope: 'shipped' | 'platform' | 'tenant'
  readonly name: string
  readonly version: number
  readonly document: PolicyDocument
  readonly compiled: CompiledPolicy | null
  readonly problem: string | null
}

interface Parts {
  readonly store: Store
  readonly log: Log
  readonly default: Effect
  /** Told whenever other policies are in force than before. */
  readonly onChange?: () => void
}

/** What the policies of the platform are called begins like this, and no other: nobody else can be taken for one, or switch its rules off. */
export const PLATFORM_PREFIX = 'platform-'

const SHIPPED: Bound = {
  scope: 'shipped',
  name: BUILTIN.name,
  version: BUILTIN_VERSION,
  document: BUILTIN,
  compiled: compilePolicy(BUILTIN, { version: BUILTIN_VERSION }),
  problem: null,
}

/**
 * The policies in force, compiled once. A decision asks no store: who writes a policy in this process has it read again at once,
 * and what another process wrote is found by looking.
 */
export class PolicyBook {
  readonly #parts: Parts
  #revision = -1
  /** By scope and name. */
  #bound: ReadonlyMap<string, ReadonlyMap<string, Bound>> = new Map()
  /** By tenant: what is asked for it, made on first use. */
  readonly #asked = new Map<string, Shelf>()
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get default(): Effect {
    return this.#parts.default
  }

  /** Reads what changed, if anything did. Concurrent calls see at least what was written before they were made. */
  async refresh(): Promise<void> {
    await this.#looking?.catch(() => {})
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    await this.#looking
  }

  /** Looks from now on. A look that fails is repeated: until then what is known holds. */
  start(): void {
    this.#timer = setInterval(() => {
      void this.refresh().catch((error: unknown) => this.#parts.log.warn('policies were not read', { error }))
    }, LOOK_EVERY_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking?.catch(() => {})
  }

  /** Never waits. */
  decide(question: Question): Decision {
    const { policies, refusal } = this.#shelf(question.tenant)
    const decision = evaluate(policies, question, { default: this.#parts.default })
    return refusal ? mergeDecisions(decision, refusal) : decision
  }

  /** The same with a draft in the place of the policy that has its name. Throws `policy_invalid`. */
  decideWith(draft: PolicyDocument, tenant: string): (question: Question) => Decision {
    const isPlatform = draft.name.startsWith(PLATFORM_PREFIX)
    const bound = bind({ scope: isPlatform ? 'platform' : 'tenant', document: draft, version: 1 })
    if (!bound.compiled) throw new AirlockError('policy_invalid', bound.problem ?? undefined)
    const { policies } = shelfOf([...this.inForce(tenant).filter(({ name }) => name !== draft.name), bound])
    return (question) => evaluate(policies, question, { default: this.#parts.default })
  }

  /** What is shipped, what the platform says, what the tenant says. */
  inForce(tenant: string): readonly Bound[] {
    const of = (scope: string) => [...(this.#bound.get(scope)?.values() ?? [])]
    return [SHIPPED, ...of(PLATFORM), ...of(tenant)]
  }

  async #look(): Promise<void> {
    const { store } = this.#parts
    const revision = await store.query(policyRevision)
    if (revision === this.#revision) return
    const rows = await store.query((db) => listLatest(db))
    const bound = new Map<string, Map<string, Bound>>()
    for (const row of rows) {
      const known = this.#bound.get(row.scope)?.get(row.name)
      const next = known?.version === row.version ? known : bindRow(row)
      if (next) bound.set(row.scope, (bound.get(row.scope) ?? new Map<string, Bound>()).set(row.name, next))
    }
    this.#bound = bound
    this.#revision = revision
    this.#asked.clear()
    this.#parts.onChange?.()
  }

  #shelf(tenant: string): Shelf {
    const known = this.#asked.get(tenant)
    if (known) return known
    const made = shelfOf(this.inForce(tenant))
    this.#asked.set(tenant, made)
    return made
  }
}

/** Throws `policy_invalid` when it cannot be in force. */
export function compileDraft(document: PolicyDocument, version: number): CompiledPolicy {
  return compilePolicy(document, { version })
}

interface Shelf {
  readonly policies: readonly CompiledPolicy[]
  /** Of a policy that cannot be used. */
  readonly refusal: Decision | null
}

/** Fails closed: where a policy should be in force and cannot be, everything is denied until somebody mends it. */
function shelfOf(bound: readonly Bound[]): Shelf {
  const policies = bound.flatMap(({ compiled }) => compiled ?? [])
  const broken = bound.filter(({ compiled }) => !compiled)
  if (broken.length === 0) return { policies, refusal: null }
  const rules = broken.map(refusingRule)
  return { policies, refusal: { effect: 'deny', risk: 'high', rules, conditions: {}, policyVersion: '' } }
}

function refusingRule({ name, problem }: Bound): MatchedRule {
  const reason = `The policy cannot be used, so nothing is allowed until it is mended. ${problem ?? ''}`
  return { policy: name, rule: 'unusable', effect: 'deny', risk: 'high', reason: reason.trim() }
}

function bindRow(row: StoredPolicy & PolicyHead): Bound | undefined {
  if (row.document === null) return undefined
  const scope = row.scope === PLATFORM ? 'platform' : 'tenant'
  const parsed = storedDocument.safeParse(row.document)
  if (parsed.success) return bind({ scope, document: parsed.data, version: row.version })
  const document = { name: row.name, off: [], rules: [] }
  return { scope, name: row.name, version: row.version, document, compiled: null, problem: parsed.error.message }
}

function bind(of: {
  readonly scope: 'platform' | 'tenant'
  readonly document: PolicyDocument
  readonly version: number
}): Bound {
  const { scope, version } = of
  const document = scope === 'platform' ? of.document : { ...of.document, off: of.document.off.filter(isOwnToSwitch) }
  const { name } = document
  try {
    return { scope, name, version, document, compiled: compileDraft(document, version), problem: null }
  } catch (error) {
    if (!isAirlockError(error)) throw error
    return { scope, name, version, document, compiled: null, problem: error.message }
  }
}

/** A tenant switches off what is shipped and what is its own. */
export function isOwnToSwitch(rule: string): boolean {
  return !rule.startsWith(PLATFORM_PREFIX)
}
