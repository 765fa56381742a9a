import type { UsageReport } from '@airlock/contract'
import type { Usage } from '../../spend/usage.ts'
import { json, type Handlers } from '../call.ts'

export function usageHandlers(usage: Usage) {
  return {
    getUsage: async ({ caller, query, wants }) => {
      const report = await usage.report(caller, query)
      if (wants !== 'csv') return json(report)
      return { kind: 'text', type: 'text/csv; charset=utf-8', text: toCsv(report) }
    },
  } satisfies Partial<Handlers>
}

const COLUMNS = [
  'day',
  'tenant',
  'agent',
  'sandbox',
  'model',
  'sandboxes',
  'wallSeconds',
  'cpuSeconds',
  'computeSeconds',
  'calls',
  'estimatedCalls',
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'microDollars',
  'dollars',
] as const

/** Names have no comma and no quote and begin with a letter or digit, so nothing needs quotes and no cell is a formula. */
function toCsv({ items }: UsageReport): string {
  return [COLUMNS, ...items.map((row) => COLUMNS.map((column) => row[column] ?? ''))]
    .map((row) => `${row.join(',')}\r\n`)
    .join('')
}
