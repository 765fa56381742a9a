import { AirlockError } from '@airlock/contract'
import type { MetricFeed } from '../../monitor/metrics.ts'
import type { App } from '../../app/app.ts'
import { json, type Handlers } from '../call.ts'
import { docsPage } from '../docs.ts'
import type { Metrics } from '../metrics.ts'
import { openapiDocument } from '../openapi.ts'

export function systemHandlers(
  { readiness, sandboxes }: Pick<App, 'readiness' | 'sandboxes'>,
  of: { readonly metrics: Metrics; readonly feed: MetricFeed },
) {
  const openapi = openapiDocument()
  const docs = docsPage()
  return {
    whoami: async ({ caller }) => json(caller.principal),
    health: async () => json({ status: 'ok' }),
    ready: async () => {
      const now = readiness.state
      if (!now.ready) throw new AirlockError('not_ready', now.reason, { retryAfterS: 1 })
      return json({ status: 'ready', ...(now.warnings.length > 0 ? { warnings: now.warnings } : {}) })
    },
    metrics: async () => ({
      kind: 'text',
      type: 'text/plain; version=0.0.4; charset=utf-8',
      text: of.metrics.render(await sandboxes.counts(), of.feed.overview()),
    }),
    openapi: async () => json(openapi),
    docs: async () => ({ kind: 'text', type: 'text/html; charset=utf-8', ...docs }),
  } satisfies Partial<Handlers>
}
