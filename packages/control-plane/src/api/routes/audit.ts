import type { Core } from '../../app/core.ts'
import { json, type Handlers } from '../call.ts'

export function auditHandlers(core: Core) {
  return {
    auditEvents: async ({ caller, query }) => json(await core.auditEvents(caller, query)),
    auditExport: async ({ caller, signal }) => ({
      kind: 'lines',
      lines: lines(await core.auditExport(caller, signal)),
    }),
    auditChains: async ({ caller }) => json({ items: await core.auditChains(caller) }),
    auditQuarantine: async ({ caller, body }) => json(await core.auditQuarantine(caller, body.tenant)),
    auditHead: async ({ caller }) => json(await core.auditHead(caller)),
  } satisfies Partial<Handlers>
}

async function* lines(source: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of source) yield line.endsWith('\n') ? line : `${line}\n`
}
