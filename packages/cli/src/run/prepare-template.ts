import { AirlockError, type Airlock, type Template, type TemplateEvent } from '@airlock/sdk'
import { withProgress } from '../text/progress.ts'
import type { Terminal } from '../text/terminal.ts'
import { formatBytes } from '../text/units.ts'

type Progress = Extract<TemplateEvent, { event: 'progress' }>

/** Builds a template that is not ready yet, and shows how far it is: the first time it takes minutes. */
export async function prepareTemplate(
  terminal: Terminal,
  airlock: Airlock,
  what: { readonly name: string; readonly signal: AbortSignal },
): Promise<void> {
  const { name, signal } = what
  const template = await airlock.templates.get(name, { signal })
  if (template.state === 'ready') return
  terminal.note(`Installing the template ${name}; this is done once.`)
  await buildTemplate(terminal, airlock, what)
}

/** The signal ends the waiting; the server goes on. */
export async function buildTemplate(
  terminal: Terminal,
  airlock: Airlock,
  { name, signal }: { readonly name: string; readonly signal?: AbortSignal },
): Promise<Template> {
  let label = `Installing ${name}`
  const build = async (): Promise<Template> => {
    for await (const event of airlock.templates.build(name, { signal })) {
      if (event.event === 'ended') return event.template
      if (event.event === 'progress') label = describe(event)
    }
    throw new AirlockError('server_unreachable', 'The stream ended before the build.')
  }
  return withProgress(terminal, () => label, build)
}

const STEPS: Readonly<Record<Progress['step'], string>> = {
  resolve: 'Looking up packages',
  download: 'Downloading',
  unpack: 'Unpacking',
  prepare: 'Preparing',
}

function describe({ step, done, total, detail }: Progress): string {
  const amount = step === 'download' ? formatBytes : String
  const far = total === null ? (done > 0 ? amount(done) : '') : `${amount(done)} of ${amount(total)}`
  return [STEPS[step], far, detail].filter((part) => part !== '').join(' ')
}
