import { AirlockError, type Template, type TemplateEvent } from '@airlock/contract'
import type { Core } from '../../app/core.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

export function templateHandlers(core: Core) {
  return {
    listTemplates: async ({ caller }) => json({ items: await core.listTemplates(caller) }),
    getTemplate: async ({ caller, params }) => json(await core.getTemplate(caller, params.name)),
    putTemplate: async ({ caller, params, body }) => json(await core.putTemplate(caller, params.name, body)),
    buildTemplate: async ({ caller, params, wants }) => {
      const events = core.buildTemplate(caller, params.name)
      if (wants === 'json') return json(await lastOf(events))
      // Before the head of the answer is out, so that a template that is not there is a plain 404.
      await core.getTemplate(caller, params.name)
      return { kind: 'events', events }
    },
    importTemplate: async ({ caller, params, bytes }) => json(await core.importTemplate(caller, params.name, bytes)),
    removeTemplate: async ({ caller, params }) => {
      await core.removeTemplate(caller, params.name)
      return NOTHING
    },
  } satisfies Partial<Handlers>
}

async function lastOf(events: AsyncIterable<TemplateEvent>): Promise<Template> {
  for await (const event of events) if (event.event === 'ended') return event.template
  throw new AirlockError('internal')
}
