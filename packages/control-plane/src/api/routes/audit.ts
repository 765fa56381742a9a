import type { App } from '../../app/app.ts'
import { json, type Handlers } from '../call.ts'

export function auditHandlers(audit: App['audit']) {
  return {
    auditEvents: async ({ caller, query }) => json(await audit.events(caller, query)),
    auditExport: async ({ caller, signal }) => ({
      kind: 'lines',
      lines: lines(await audit.export(caller, signal)),
    }),
    auditChains: async ({ caller }) => json({ items: await audit.chains(caller) }),
    auditQuarantine: async ({ caller, body }) => json(await audit.quarantine(caller, body.tenant)),
    auditHead: async ({ caller }) => json(await audit.head(caller)),
  } satisfies Partial<Handlers>
}

async function* lines(source: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of source) yield line.endsWith('\n') ? line : `${line}\n`
}
