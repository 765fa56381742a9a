import { Airlock, type Template } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { reportFailure } from '../failure.ts'
import { addModelOptions, assertHasModel, type ModelOptions, toModelLimits } from '../options/model-options.ts'
import { collectWords } from '../text/pairs.ts'
import { buildTemplate } from '../run/prepare-template.ts'
import { withProgress } from '../text/progress.ts'
import { renderTable, type Cell, type Row } from '../text/table.ts'
import { formatBytes } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineTemplate(template: Command, context: Context): void {
  addLs(template, context)
  addBuild(template, context)
  addImport(template, context)
  addRm(template, context)
}

function addLs(template: Command, context: Context): void {
  withJson(template.command('ls').description('List what sandboxes can start from.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const found = await new Airlock().templates.list()
      if (options.json === true) return terminal.printJson(found)
      const head = ['NAME', 'STATE', 'FROM', 'SIZE', 'PACKAGES']
      await terminal.print(renderTable(terminal, head, found.map(templateRow)))
    },
  )
}

function templateRow(template: Template): Row {
  return [
    template.name,
    stateCell(template),
    template.shipped ? `${template.source}, shipped` : template.source,
    template.bytes === null ? '-' : formatBytes(template.bytes),
    template.packages.join(' ').slice(0, 60) || '-',
  ]
}

function stateCell({ state, error }: Template): Cell {
  if (state === 'ready') return { text: state, style: 'green' }
  if (state === 'failed') return { text: error ? `${state}: ${error.message}` : state, style: 'red' }
  return { text: state, style: state === 'building' ? 'yellow' : 'dim' }
}

type BuildOptions = JsonOption & ModelOptions & { readonly package?: readonly string[] }

function addBuild(template: Command, context: Context): void {
  const build = withJson(
    template.command('build').description('Build a template now, of Debian packages where they are given.'),
  )
    .argument('<name>', 'a template that is there, or a new one')
    .option('--package <package>', 'a Debian package; may be given several times', collectWords)
  addModelOptions(build)
    .addHelpText('after', '\nExample: airlock template build web --package python3-requests --package jq')
    .action(async (name: string, options: BuildOptions) => {
      assertHasModel(options)
      const airlock = new Airlock()
      const { package: packages = [], model: models = [] } = options
      const modelLimits = toModelLimits(options)
      if (packages.length + models.length > 0)
        await airlock.templates.put(name, { packages: [...packages], models: [...models], modelLimits })
      await printTemplate(context, await buildTemplate(context.terminal, airlock, { name }), options)
    })
}

function addImport(template: Command, context: Context): void {
  withJson(template.command('import').description('Make a template of a root file system.'))
    .argument('<name>', 'a template of yours, whose image is replaced, or a new one')
    .argument('<path>', 'a directory, a tar, an OCI layout, or what "docker save" wrote; - for a tar on stdin')
    .action(async (name: string, path: string, options: JsonOption) => {
      let label = 'Sending'
      const onProgress = ({ bytes, total }: { readonly bytes: number; readonly total: number | null }): void => {
        const whole = total === null ? '' : ` of ${formatBytes(total)}`
        label = bytes === total ? 'Unpacking' : `Sending ${formatBytes(bytes)}${whole}`
      }
      const { templates } = new Airlock()
      const source = path === '-' ? process.stdin : { path }
      const send = async (): Promise<Template> => templates.import(name, source, { onProgress })
      await printTemplate(context, await withProgress(context.terminal, () => label, send), options)
    })
}

async function printTemplate({ terminal }: Context, template: Template, options: JsonOption): Promise<void> {
  if (options.json === true) return terminal.printJson(template)
  const size = template.bytes === null ? '' : ` (${formatBytes(template.bytes)})`
  await terminal.print(`${template.name} is ${template.state}${size}`)
}

function addRm(template: Command, context: Context): void {
  withJson(template.command('rm').description('Remove templates of yours.'))
    .argument('<name...>', 'their names')
    .action(async (names: readonly string[], options: JsonOption) => {
      const { terminal } = context
      const { templates } = new Airlock()
      const removed: string[] = []
      for (const name of names) {
        try {
          await templates.remove(name)
          removed.push(name)
          if (options.json !== true) await terminal.print(name)
        } catch (error) {
          // The others are removed all the same.
          context.exitCode = reportFailure(terminal, error)
        }
      }
      if (options.json === true) await terminal.printJson(removed)
    })
}
