import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { Airlock, type Secret } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { type Cell, renderTable, type Row } from '../text/table.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineSecret(secret: Command, context: Context): void {
  addPut(secret, context)
  addLs(secret, context)
  addRm(secret, context)
}

interface PutOptions extends JsonOption {
  readonly origin: string
  readonly file?: string
}

function addPut(secret: Command, context: Context): void {
  const about = 'Store a value from stdin or a file, or replace it. It is sealed here, and never shown again.'
  withJson(secret.command('put').description(about))
    .argument('<name>', 'what tools call it')
    .requiredOption('--origin <url>', 'the only origin that it is sent to, such as https://api.github.com')
    .option('--file <path>', 'a file with the value; stdin without it')
    .action(async (name: string, { json, origin, file }: PutOptions) => {
      const { terminal } = context
      if (file === undefined && process.stdin.isTTY)
        throw new UsageError('The value comes by stdin or --file.', `Use: airlock secret put ${name} … < FILE`)
      const given = file === undefined ? await text(process.stdin) : await readFile(file, 'utf8')
      const value = given.replace(/\r?\n$/, '')
      const put = await new Airlock({ role: 'admin' }).secrets.put(name, { value, origin })
      if (json === true) return terminal.printJson(put)
      await terminal.print(put.name)
      terminal.note(`Version ${put.version}, for ${put.origin} alone.`)
    })
}

function addLs(secret: Command, context: Context): void {
  withJson(secret.command('ls').description('List secrets. No value is shown.')).action(async (options: JsonOption) => {
    const { terminal } = context
    const found = await new Airlock({ role: 'admin' }).secrets.list()
    if (options.json === true) return terminal.printJson(found)
    const head = ['NAME', 'ORIGIN', 'VERSION', 'STATE', 'CHANGED', 'BY']
    await terminal.print(renderTable(terminal, head, found.map(rowOf)))
  })
}

function addRm(secret: Command, context: Context): void {
  withJson(secret.command('rm').description('Remove a secret. Tools that name it are refused from then on.'))
    .argument('<name>', 'the secret')
    .action(async (name: string, options: JsonOption) => {
      await new Airlock({ role: 'admin' }).secrets.remove(name)
      await (options.json === true ? context.terminal.printJson({ name }) : context.terminal.print(name))
    })
}

function rowOf({ name, origin, version, usable, updatedAt, updatedBy }: Secret): Row {
  const state: Cell = usable ? { text: 'usable', style: 'green' } : { text: 'of another node', style: 'yellow' }
  return [name, origin, `${version}`, state, updatedAt, updatedBy]
}
