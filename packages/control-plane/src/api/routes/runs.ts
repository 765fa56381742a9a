import type { RunEvent, RunSummary } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import { type Handlers, json, NOTHING } from '../call.ts'

export function runHandlers({ runs, catalog }: Pick<App, 'runs' | 'catalog'>) {
  return {
    listCatalog: async ({ caller }) => json({ items: [...(await catalog.list(caller))] }),
    getGraph: async ({ caller, params }) => json(await catalog.get(caller, params.name)),
    putGraph: async ({ caller, params, body }) => json(await catalog.put(caller, params.name, body)),
    removeGraph: async ({ caller, params }) => {
      await catalog.remove(caller, params.name)
      return NOTHING
    },
    submitRun: async ({ caller, body, wants, signal }) => {
      const run = await runs.submit(caller, body)
      if (wants !== 'events' && !body.stream) return json(run)
      const events = runs.events(caller, run.id, { from: 0, follow: true, signal })
      return { kind: 'events', events }
    },
    listRuns: async ({ caller, query }) => json(await runs.list(caller, query)),
    getRun: async ({ caller, params }) => json(await runs.get(caller, params.id)),
    cancelRun: async ({ caller, params }) => json(await runs.cancel(caller, params.id)),
    runEvents: async ({ caller, params, query, wants, lastEventId, signal }) => {
      const from = lastEventId ?? query.from
      const follow = wants === 'events'
      const { result: _result, usage: _usage, ...now } = await runs.get(caller, params.id)
      const events = runs.events(caller, params.id, { from, follow, signal })
      if (follow) return { kind: 'events', events: startingWith(now, events) }
      return json({ items: await collect(events) })
    },
    runLog: async ({ caller, params }) => json(await runs.log(caller, params.id)),
  } satisfies Partial<Handlers>
}

/** The refusal of a run that is not there is an answer, and not an event. */
async function* startingWith(run: RunSummary, events: AsyncIterable<RunEvent>): AsyncGenerator<RunEvent> {
  yield { event: 'started', run }
  for await (const event of events) if (event.event !== 'started') yield event
}

/** The events of a run are bounded, so all of them fit. */
async function collect(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const items: RunEvent[] = []
  for await (const event of events) items.push(event)
  return items
}
