import type { EventQuery, StreamedEvent } from '@airlock/contract'
import type { EventFeed } from '../../evidence/events.ts'
import { type Call, json, type Handlers } from '../call.ts'

type Asking = Pick<Call<'events'>, 'caller' | 'wants' | 'lastEventId' | 'signal'>

export function eventHandlers(feed: EventFeed) {
  return {
    events: async (call) => answer(feed, call, call.query),
    agentEvents: async (call) => {
      await feed.assertAgent(call.caller, call.params.id)
      return answer(feed, call, { ...call.query, agent: call.params.id })
    },
    sandboxEvents: async (call) => {
      await feed.assertSandbox(call.caller, call.params.id)
      return answer(feed, call, { ...call.query, sandbox: call.params.id })
    },
    agentSummary: async ({ caller, params, query }) =>
      json(await feed.summary(caller, { agent: params.id, days: query.days })),
    auditStats: async ({ caller }) => json(await feed.stats(caller)),
  } satisfies Partial<Handlers>
}

/** Where a client that lost its stream was is the newer truth. */
async function answer(feed: EventFeed, { caller, wants, lastEventId, signal }: Asking, query: EventQuery) {
  if (wants !== 'events') return json(await feed.page(caller, query))
  const cut = new AbortController()
  const asked = { ...query, after: lastEventId ?? query.after }
  const place = new Place(await feed.stream(caller, asked, AbortSignal.any([signal, cut.signal])))
  const slow = { onCut: () => cut.abort(), last: () => ({ event: 'cut', seq: place.seq }) as const }
  return { kind: 'events', events: place.events(), slow } as const
}

/** How far a stream was read. */
class Place {
  readonly #source: AsyncIterable<StreamedEvent>
  seq = 0

  constructor(source: AsyncIterable<StreamedEvent>) {
    this.#source = source
  }

  async *events(): AsyncGenerator<StreamedEvent> {
    for await (const event of this.#source) {
      this.seq = event.seq
      yield event
    }
  }
}
