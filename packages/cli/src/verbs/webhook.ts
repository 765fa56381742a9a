import { Airlock, type Webhook, type WebhookEvent } from '@airlock/sdk'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { type Cell, renderTable, type Row } from '../text/table.ts'
import { formatDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const EVENTS = ['approval.pending', 'approval.answered', 'kill', 'alert'] as const satisfies readonly WebhookEvent[]

export function defineWebhook(webhook: Command, context: Context): void {
  addAdd(webhook, context)
  addLs(webhook, context)
  addRm(webhook, context)
}

function addAdd(webhook: Command, context: Context): void {
  const about = 'Tell a URL of events, and print the secret that signs them. It is shown this once.'
  withJson(webhook.command('add').description(about))
    .argument('<url>', 'https, at a public address unless the server allows others')
    .requiredOption('--on <event>', `one of ${EVENTS.join(', ')}; may be given several times`, collectEvents)
    .action(async (url: string, options: JsonOption & { readonly on: readonly WebhookEvent[] }) => {
      const made = await new Airlock({ role: 'admin' }).webhooks.create({ url, events: options.on })
      if (options.json === true) return context.terminal.printJson(made)
      await context.terminal.print(made.secret)
      context.terminal.note(`Webhook ${made.webhook.id}. The secret is not shown again.`)
    })
}

function addLs(webhook: Command, context: Context): void {
  withJson(webhook.command('ls').description('List webhooks, and how the last delivery of each went.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const found = await new Airlock({ role: 'admin' }).webhooks.list()
      if (options.json === true) return terminal.printJson(found)
      await terminal.print(renderTable(terminal, ['ID', 'URL', 'EVENTS', 'LAST'], found.map(rowOf)))
    },
  )
}

function addRm(webhook: Command, context: Context): void {
  withJson(webhook.command('rm').description('Tell it nothing any more.'))
    .argument('<id>', 'the webhook')
    .action(async (id: string, options: JsonOption) => {
      await new Airlock({ role: 'admin' }).webhooks.remove(id)
      await (options.json === true ? context.terminal.printJson({ id }) : context.terminal.print(id))
    })
}

function rowOf({ id, url, events, lastAt, lastError }: Webhook): Row {
  return [id, url, events.join(' '), lastOf(lastAt, lastError)]
}

function lastOf(lastAt: string | null, lastError: string | null): Cell {
  if (lastAt === null) return { text: 'never', style: 'dim' }
  const ago = `${formatDuration(Date.now() - Date.parse(lastAt))} ago`
  return lastError === null ? { text: `taken ${ago}`, style: 'green' } : { text: `${ago}: ${lastError}`, style: 'red' }
}

function collectEvents(text: string, before: readonly WebhookEvent[] = []): readonly WebhookEvent[] {
  const event = EVENTS.find((name) => name === text)
  if (event === undefined) throw new InvalidArgumentError(`It is one of ${EVENTS.join(', ')}.`)
  return [...before, event]
}
