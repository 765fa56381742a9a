import type { Step, StepEvent, StepOutput, StepResult } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import type { StepRef } from '../../sessions/steps.ts'
import { json, NOTHING, type Handlers } from '../call.ts'
import { RunText } from '../run-text.ts'

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
      const { noun, events } = await steps.run(caller, params.id, { ...body, follow: signal })
      if (wants === 'events') return { kind: 'events', events }
      return json(await collect(events, async () => steps.get(caller, { session: params.id, step: noun.id })))
    },
    listSteps: async ({ caller, params, query }) => json(await steps.list(caller, params.id, query)),
    getStep: async ({ caller, params }) => json(await steps.get(caller, refTo(params))),
    stepOutput: async ({ caller, params, query, wants, lastEventId, signal }) => {
      const of = refTo(params)
      const follow = wants === 'events'
      // Refused before the stream begins.
      await steps.get(caller, of)
      const events = steps.events(caller, of, { from: lastEventId ?? query.from, follow, signal })
      if (follow) return { kind: 'events', events }
      return json(await collect(events, async () => steps.get(caller, of)))
    },
  } satisfies Partial<Handlers>
}

function refTo(params: { readonly id: string; readonly step: string }): StepRef {
  return { session: params.id, step: params.step }
}

/** What was said as text, what was shown, and how the step stands after it. */
async function collect(events: AsyncIterable<StepEvent>, look: () => Promise<Step>): Promise<StepResult> {
  const text = new RunText()
  const outputs: StepOutput[] = []
  let ended: Step | undefined
  for await (const event of events) {
    if (event.event === 'ended') ended = event.step
    else if (event.event === 'rich') outputs.push(event.output)
    else if (event.event === 'output') text.add(event)
  }
  return { ...text.of(ended ?? (await look())), outputs }
}
