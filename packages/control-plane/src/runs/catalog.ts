import { AirlockError, BOUNDS, type Graph, type GraphSpec, submitJobBody } from '@airlock/contract'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { argvOf, sha256Of } from '../jobs/job-nouns.ts'
import { deleteGraph, findGraph, listGraphs, type StoredGraph, writeGraph } from '../store/graphs.ts'
import { templateFacts } from '../templates/template-facts.ts'
import type { FixedGraph } from './builtin-graphs.ts'

type KnownGraph = FixedGraph | (StoredGraph & { readonly source: 'tenant' })

/** Agent programs: those of the server, which all tenants have, and those of each tenant. */
export class Catalog {
  readonly #context: Context
  readonly #fixed: readonly FixedGraph[]

  constructor(context: Context) {
    this.#context = context
    this.#fixed = context.graphs
  }

  async list({ principal }: Caller): Promise<readonly Graph[]> {
    const rows = await this.#context.store.query((db) => listGraphs(db, principal.tenant))
    return [...this.#fixed.map(toGraph), ...rows.map((row) => toGraph({ ...row, source: 'tenant' }))]
  }

  async get(caller: Caller, name: string): Promise<Graph> {
    return toGraph(await this.find(caller, name))
  }

  /** Throws `graph_not_found`, also for what another tenant has. */
  async find({ principal }: Caller, name: string): Promise<KnownGraph> {
    const fixed = this.#fixed.find((one) => one.name === name)
    if (fixed) return fixed
    const row = await this.#context.store.query((db) => findGraph(db, { tenant: principal.tenant, name }))
    if (row) return { ...row, source: 'tenant' }
    throw new AirlockError('graph_not_found')
  }

  async put(caller: Caller, name: string, spec: GraphSpec): Promise<Graph> {
    this.#assertOwn(name)
    this.#context.models.namesOf(spec.models)
    const { tenant } = caller.principal
    await this.#context.store.query((db) => templateFacts(db, { tenant, name: spec.template }))
    const { sha256, version, template, models } = toGraph({ name, source: 'configuration', spec })
    const deed = deedOf(caller, 'catalog.put', { action: name, version, template, models, sha256 })
    const passed = await this.#context.guardian.pass(caller, deed)
    await doRecorded(this.#context, passed, async () => ({ value: await this.#write({ tenant, name, spec }) }))
    return this.get(caller, name)
  }

  async remove(caller: Caller, name: string): Promise<void> {
    this.#assertOwn(name)
    const { store, audit } = this.#context
    const { tenant } = caller.principal
    const isRemoved = await store.transaction(async (db) => deleteGraph(db, { tenant, name }))
    if (!isRemoved) throw new AirlockError('graph_not_found')
    audit.note({ ...deedOf(caller, 'catalog.remove', { graph: name }), status: 'done' })
  }

  async #write(graph: Omit<StoredGraph, 'createdAt'>): Promise<void> {
    const { store, clock } = this.#context
    await store.transaction(async (db) => {
      const before = await findGraph(db, graph)
      if (!before && (await listGraphs(db, graph.tenant)).length >= BOUNDS.graphs)
        throw new AirlockError('too_many_graphs')
      await writeGraph(db, { ...graph, createdAt: before?.createdAt ?? clock.now() })
    })
  }

  #assertOwn(name: string): void {
    if (this.#fixed.some((one) => one.name === name)) throw new AirlockError('graph_fixed')
  }
}

function deedOf({ principal, requestId }: Caller, point: Deed['point'], payload: Deed['payload']): Deed {
  const { tenant, actor } = principal
  return { point, tenant, actor, agent: null, sandbox: null, payload: { requestId, ...payload } }
}

function toGraph(graph: KnownGraph): Graph {
  const { name, source, spec } = graph
  const { description, version, template, code, language, argv: own, ...rest } = spec
  const body = submitJobBody.parse(code === undefined ? { argv: own } : { code, language })
  const { models, modelLimits, limits, tier, doors, timeoutMs } = rest
  const argv = [...argvOf(body)]
  const shown = { description, version, template, argv, language: language ?? null, sha256: sha256Of(body) }
  const createdAt = 'createdAt' in graph ? new Date(graph.createdAt).toISOString() : null
  return { name, source, ...shown, models, modelLimits, limits, tier, doors, timeoutMs, createdAt }
}
