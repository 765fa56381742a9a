import { Airlock, type Model } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { renderTable, type Row } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineLlm(llm: Command, context: Context): void {
  withJson(llm.command('models').description('List the models of the configured upstreams, with their prices.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const models = await new Airlock().models.list()
      if (options.json === true) return terminal.printJson(models)
      const head = ['MODEL', 'UPSTREAM', 'READS', 'WRITES', '$/M IN', '$/M OUT', 'ALIASES']
      await terminal.print(renderTable(terminal, head, models.map(modelRow)))
    },
  )
}

function modelRow({ name, aliases, upstream, contextWindow, maxOutput, price }: Model): Row {
  const prices = [`${price.input}`, `${price.output}`]
  return [name, upstream ?? 'built in', `${contextWindow}`, `${maxOutput}`, ...prices, aliases.join(' ') || '-']
}
