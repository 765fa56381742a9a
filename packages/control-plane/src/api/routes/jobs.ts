import type { Job, JobEvent, JobLog } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import { json, type Handlers } from '../call.ts'

export function jobHandlers(jobs: App['jobs']) {
  return {
    submitJob: async ({ caller, body }) => json(await jobs.submit(caller, body)),
    listJobs: async ({ caller, query }) => json(await jobs.list(caller, query)),
    getJob: async ({ caller, params }) => json(await jobs.get(caller, params.id)),
    cancelJob: async ({ caller, params }) => json(await jobs.cancel(caller, params.id)),
    jobLogs: async ({ caller, params, query, wants, lastEventId, signal }) => {
      const from = lastEventId ?? query.from
      const follow = wants === 'events'
      const now = await jobs.get(caller, params.id)
      const events = jobs.events(caller, params.id, { from, follow, signal })
      if (follow) return { kind: 'events', events: startingWith(now, events) }
      return json(await collect(now, { events, from }))
    },
  } satisfies Partial<Handlers>
}

/** The refusal of a job that is not there is an answer, and not an event. */
async function* startingWith(job: Job, events: AsyncIterable<JobEvent>): AsyncGenerator<JobEvent> {
  yield { event: 'started', job }
  for await (const event of events) if (event.event !== 'started') yield event
}

/** A log is bounded, so all of it fits. */
async function collect(
  now: Job,
  of: { readonly events: AsyncIterable<JobEvent>; readonly from: number },
): Promise<JobLog> {
  const chunks: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  let job = now
  let offset = of.from
  for await (const event of of.events) {
    if (event.event === 'started' || event.event === 'ended') job = event.job
    if (event.event !== 'output') continue
    const bytes = event.base64 === undefined ? Buffer.from(event.text ?? '') : Buffer.from(event.base64, 'base64')
    chunks[event.stream].push(bytes)
    ;({ offset } = event)
  }
  const text = (stream: 'stdout' | 'stderr') => Buffer.concat(chunks[stream]).toString('utf8')
  return { job, stdout: text('stdout'), stderr: text('stderr'), offset }
}
