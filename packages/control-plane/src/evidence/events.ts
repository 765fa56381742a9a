import type { EventReader, Followed, RecordFilter } from '@airlock/audit'
import {
  type AgentSummary,
  type AuditEvent,
  type AuditRecord,
  type AuditStats,
  BOUNDS,
  type EventPage,
  type EventQuery,
  type Principal,
  type StreamedEvent,
} from '@airlock/contract'
import { ownedAgent } from '../agents/agents.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { type Deed, describeError, doRecorded, type Governed } from './evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { ownedSandbox } from '../sandboxes/owned-sandbox.ts'
import { recordRefusal } from './refusals.ts'
import { StreamPlaces } from '../commands/stream-places.ts'

const DAY_MS = 24 * 3600 * 1000

/** What happens and what happened, for callers: made of the evidence, and nothing else. */
export interface EventFeed {
  page(caller: Caller, query: EventQuery): Promise<EventPage>
  /** From now on, or after a record; without an end. Resolves once it has begun. */
  stream(caller: Caller, query: EventQuery, signal: AbortSignal): Promise<AsyncIterable<StreamedEvent>>
  /** Throws when it is not the caller's. */
  assertAgent(caller: Caller, agent: string): Promise<void>
  assertSandbox(caller: Caller, sandbox: string): Promise<void>
  summary(caller: Caller, of: { readonly agent: string; readonly days: number }): Promise<AgentSummary>
  stats(caller: Caller): Promise<AuditStats>
}

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'guardian'> & { readonly reader: EventReader }

/** Of the caller's own tenant, and of the agents it may act for. That it was read is evidence too. */
export class Events implements EventFeed {
  readonly #world: World
  readonly #places = new StreamPlaces(BOUNDS.eventStreams)

  constructor(world: World) {
    this.#world = world
  }

  async page(caller: Caller, query: EventQuery): Promise<EventPage> {
    const { reader } = this.#world
    const { principal } = caller
    const reading = await this.#pass(caller, { what: 'events', ...describeQuery(query) })
    return doRecorded(this.#world, reading, async () => {
      const { after, limit } = query
      const page = await reader.page(principal.tenant, { filter: filterOf(principal, query), after, limit })
      const items = page.records.map((record) => toEvent(record, principal))
      return { value: { items, after: page.after, gap: page.gap }, payload: { records: items.length } }
    })
  }

  async stream(caller: Caller, query: EventQuery, signal: AbortSignal): Promise<AsyncIterable<StreamedEvent>> {
    const { audit, reader } = this.#world
    const { principal } = caller
    const { tenant } = principal
    const reading = await this.#pass(caller, { what: 'stream', ...describeQuery(query) })
    const stream = new OpenStream({ audit, reading, close: this.#places.take(tenant) })
    try {
      await audit.require({ ...reading, status: 'requested' })
      const asked = { filter: filterOf(principal, query), after: query.after }
      const source = reader.follow(tenant, asked, signal)[Symbol.asyncIterator]()
      // So that what is refused is an answer, and not the first event.
      const first = await source.next()
      // Whoever goes before it reads anything is gone all the same.
      signal.addEventListener('abort', () => stream.end(), { once: true })
      return stream.events({ first, source }, principal)
    } catch (error) {
      stream.end(error)
      throw error
    }
  }

  async assertAgent(caller: Caller, agent: string): Promise<void> {
    await this.#world.store.query((db) => ownedAgent(db, caller, agent))
  }

  async assertSandbox(caller: Caller, sandbox: string): Promise<void> {
    await ownedSandbox(this.#world.store, caller, sandbox)
  }

  async summary(caller: Caller, of: { readonly agent: string; readonly days: number }): Promise<AgentSummary> {
    await this.assertAgent(caller, of.agent)
    const now = this.#world.clock.now()
    const [from, to] = [now - (of.days - 1) * DAY_MS, now].map((at) => new Date(at).toISOString().slice(0, 10))
    return this.#world.reader.summary(caller.principal.tenant, { agent: of.agent, from: from ?? '', to: to ?? '' })
  }

  async stats(caller: Caller): Promise<AuditStats> {
    await recordRefusal(this.#world, deed(caller, { what: 'stats' }), async () => assertUnbound(caller))
    return this.#world.reader.stats(caller.principal.tenant)
  }

  async #pass(caller: Caller, payload: Deed['payload']): Promise<Governed> {
    return this.#world.guardian.pass(caller, deed(caller, payload))
  }
}

interface Source {
  readonly first: IteratorResult<Followed>
  readonly source: AsyncIterator<Followed>
}

/** One stream: gives its place back and is recorded as over once, however it ends. */
class OpenStream {
  readonly #of: { readonly audit: Context['audit']; readonly reading: Governed; readonly close: () => void }
  #records = 0
  #isOver = false

  constructor(of: { readonly audit: Context['audit']; readonly reading: Governed; readonly close: () => void }) {
    this.#of = of
  }

  async *events({ first, source }: Source, principal: Principal): AsyncGenerator<StreamedEvent> {
    try {
      for (let next = first; next.done !== true; next = await source.next()) {
        if (next.value.type === 'record') this.#records += 1
        yield toStreamed(next.value, principal)
      }
    } catch (error) {
      this.end(error)
      throw error
    } finally {
      this.end()
      await source.return?.()
    }
  }

  end(error?: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    const { audit, reading, close } = this.#of
    close()
    const payload = { ...reading.payload, records: this.#records }
    if (error === undefined) audit.note({ ...reading, status: 'done', payload })
    else audit.note({ ...reading, status: 'failed', error: describeError(error), payload })
  }
}

/**
 * Who sees what. Who is bound sees the records of its agents; a developer those of agents alone, for what is decided about
 * keys, tenants and policies is not about its work. Others see all of their tenant.
 */
function filterOf({ role, agents }: Principal, query: EventQuery): RecordFilter {
  const { agent, sandbox, point, status, since } = query
  const asked = agent === undefined ? undefined : [agent]
  const meant = agents === null ? asked : agents.filter((one) => asked?.includes(one) ?? true)
  return {
    ...(meant === undefined ? {} : { agents: [...meant] }),
    ...(role === 'developer' ? { anyAgent: true } : {}),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(point === undefined ? {} : { points: point }),
    ...(status === undefined ? {} : { statuses: status }),
    ...(since === undefined ? {} : { since }),
  }
}

function toStreamed(followed: Followed, principal: Principal): StreamedEvent {
  if (followed.type !== 'record') return { event: followed.type, seq: followed.seq }
  return { event: 'record', seq: followed.record.seq, record: toEvent(followed.record, principal) }
}

/**
 * A developer is told that another did something and how it ended, not what: arguments and paths may be nobody else's
 * business. What we did ourselves, such as how a sandbox ended, is told.
 */
function toEvent(record: AuditRecord, { role, actor }: Principal): AuditEvent {
  const { hash: _hash, prev: _prev, process: _process, tenant: _tenant, ...event } = record
  if (role !== 'developer' || event.actor === actor || event.actor === 'system') return event
  const { seq, ts, happenedAt, late, agent, sandbox, point, status, durationMs, error } = event
  return {
    seq,
    ts,
    late,
    agent,
    sandbox,
    actor: event.actor,
    point,
    status,
    payload: null,
    ...(happenedAt === undefined ? {} : { happenedAt }),
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(error ? { error: { code: error.code, message: '' } } : {}),
  }
}

function describeQuery(query: EventQuery): Deed['payload'] {
  const { agent, sandbox, point, status, since, after } = query
  const asked = { agent, sandbox, point, status, since, after }
  return Object.fromEntries(Object.entries(asked).filter((field) => field[1] !== undefined)) as Deed['payload']
}

function deed(caller: Caller, payload: Deed['payload']): Deed {
  const { tenant, actor } = caller.principal
  const said = { requestId: caller.requestId, ...payload }
  return { point: 'audit.read', tenant, agent: null, sandbox: null, actor, payload: said }
}
