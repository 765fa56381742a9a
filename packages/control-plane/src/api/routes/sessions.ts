import type { Step, StepEvent, StepOutput, StepResult } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import type { StepRef } from '../../sessions/steps.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

/** What the JSON form of a result holds of text at most; all there is comes as events. */
const JSON_TEXT_BYTES = 16 * 1024 * 1024

export function sessionHandlers({ sessions, steps }: Pick<App, 'sessions' | 'steps'>) {
  return {
    createSession: async ({ caller, body }) => json(await sessions.create(caller, body)),
    listSessions: async ({ caller, query }) => json(await sessions.list(caller, query)),
    getSession: async ({ caller, params }) => json(await sessions.get(caller, params.id)),
    interruptSession: async ({ caller, params, query }) => {
      await sessions.interrupt(caller, params.id, query.step)
      return NOTHING
    },
    restartSession: async ({ caller, params }) => json(await sessions.restart(caller, params.id)),
    terminateSession: async ({ caller, params }) => json(await sessions.terminate(caller, params.id)),
    runStep: async ({ caller, params, body, wants, signal }) => {
      const started = await steps.run(caller, params.id, body)
      const of = { session: params.id, step: started.id }
      const events = steps.events(caller, of, { from: 0, follow: true, signal })
      if (wants === 'events') return { kind: 'events', events: startingWith(started, events) }
      return json(await collect(events, async () => steps.get(caller, of)))
    },
    listSteps: async ({ caller, params, query }) => json(await steps.list(caller, params.id, query)),
    getStep: async ({ caller, params }) => json(await steps.get(caller, refTo(params))),
    stepOutput: async ({ caller, params, query, wants, lastEventId, signal }) => {
      const of = refTo(params)
      const follow = wants === 'events'
      const now = await steps.get(caller, of)
      const events = steps.events(caller, of, { from: lastEventId ?? query.from, follow, signal })
      if (follow) return { kind: 'events', events: startingWith(now, events) }
      return json(await collect(events, async () => steps.get(caller, of)))
    },
  } satisfies Partial<Handlers>
}

function refTo(params: { readonly id: string; readonly step: string }): StepRef {
  return { session: params.id, step: params.step }
}

/** Whatever the core says first, a stream begins with exactly one `started`. */
async function* startingWith(step: Step, events: AsyncIterable<StepEvent>): AsyncGenerator<StepEvent> {
  yield { event: 'started', step }
  for await (const event of events) if (event.event !== 'started') yield event
}

/** What was said as text, lossy where it is not UTF-8, what was shown, and how the step stands after it. */
async function collect(events: AsyncIterable<StepEvent>, look: () => Promise<Step>): Promise<StepResult> {
  const chunks: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  const outputs: StepOutput[] = []
  let left = JSON_TEXT_BYTES
  let cut = false
  let ended: Step | undefined
  for await (const event of events) {
    if (event.event === 'ended') ended = event.step
    else if (event.event === 'rich') outputs.push(event.output)
    if (event.event !== 'output') continue
    const bytes = event.base64 === undefined ? Buffer.from(event.text ?? '') : Buffer.from(event.base64, 'base64')
    chunks[event.stream].push(bytes.subarray(0, left))
    cut ||= bytes.length > left
    left -= Math.min(left, bytes.length)
  }
  const step = ended ?? (await look())
  const text = (stream: 'stdout' | 'stderr') => Buffer.concat(chunks[stream]).toString('utf8')
  return { ...step, truncated: step.truncated || cut, stdout: text('stdout'), stderr: text('stderr'), outputs }
}
