import { Airlock, AirlockError } from '@airlock/sdk'
import type { Command } from 'commander'
import { describeTally, noteTo } from '../run/copy-files.ts'
import { copyIn } from '../run/copy-in.ts'
import { copyOut } from '../run/copy-out.ts'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { withProgress } from '../text/progress.ts'
import { newTally, type Tally } from '../text/tally.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineCp(command: Command, context: Context): void {
  withJson(command)
    .argument('<from>', 'a local path, <sandbox>:<path>, or - for stdin')
    .argument('<to>', 'a local path, <sandbox>:<path>, or - for stdout')
    .option('-r, --recursive', 'as cp has it: directories are always copied with all that is in them')
    .option('--all', 'also .git, node_modules and what .airlockignore names')
    .addHelpText('after', '\nExamples: airlock cp ./src scratch:/workspace/src\n          airlock cp scratch:out.csv -')
    .action(async (from: string, to: string, options: Options) => {
      const { terminal } = context
      const tally = newTally()
      const work = async (): Promise<void> => copy(context, { from, to, options }, tally)
      await (options.json === true ? work() : withProgress(terminal, () => describeTally(tally), work))
      const { files, bytes, skipped } = tally
      if (options.json !== true) for (const { path, why } of skipped) terminal.note(`left out ${path}: it ${why}`)
      if (options.json === true && to !== '-') await terminal.printJson({ from, to, files, bytes, skipped })
    })
}

interface Options extends JsonOption {
  readonly recursive?: boolean
  readonly all?: boolean
}

async function copy(
  context: Context,
  { from, to, options }: { readonly from: string; readonly to: string; readonly options: Options },
  tally: Tally,
): Promise<void> {
  const all = options.all === true
  const note = noteTo({ terminal: context.terminal, json: options.json === true })
  const source = parseRemote(from)
  const target = parseRemote(to)
  if ((source === undefined) === (target === undefined))
    throw new AirlockError('invalid_request', 'One side must be in a sandbox and the other must not.', {
      hint: 'Write <sandbox>:<path> for the one, and ./a:b for a local path with a colon.',
    })
  const airlock = new Airlock()
  if (target) {
    const sandbox = await findSandbox(airlock, target.sandbox)
    return copyIn(sandbox.files, { from, to: target.path, all, note }, tally)
  }
  const sandbox = await findSandbox(airlock, source?.sandbox ?? '')
  return copyOut(sandbox.files, { from: source?.path ?? '', to, all, terminal: context.terminal }, tally)
}

function parseRemote(text: string): { readonly sandbox: string; readonly path: string } | undefined {
  const [, sandbox, path] = /^([a-z0-9][a-z0-9._-]*):(.*)$/s.exec(text) ?? []
  return sandbox === undefined ? undefined : { sandbox, path: path === undefined || path === '' ? '/workspace' : path }
}
