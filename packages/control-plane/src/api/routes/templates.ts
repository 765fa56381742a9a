import { AirlockError, type Template, type TemplateEvent } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

export function templateHandlers(templates: App['templates']) {
  return {
    listTemplates: async ({ caller }) => json({ items: await templates.list(caller) }),
    getTemplate: async ({ caller, params }) => json(await templates.get(caller, params.name)),
    putTemplate: async ({ caller, params, body }) => json(await templates.put(caller, params.name, body)),
    buildTemplate: async ({ caller, params, wants }) => {
      const events = templates.build(caller, params.name)
      if (wants === 'json') return json(await lastOf(events))
      // Before the head of the answer is out, so that a template that is not there is a plain 404.
      await templates.get(caller, params.name)
      return { kind: 'events', events }
    },
    importTemplate: async ({ caller, params, bytes }) => json(await templates.import(caller, params.name, bytes)),
    removeTemplate: async ({ caller, params }) => {
      await templates.remove(caller, params.name)
      return NOTHING
    },
  } satisfies Partial<Handlers>
}

async function lastOf(events: AsyncIterable<TemplateEvent>): Promise<Template> {
  for await (const event of events) if (event.event === 'ended') return event.template
  throw new AirlockError('internal')
}
