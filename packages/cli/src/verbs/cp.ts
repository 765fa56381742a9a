import { Airlock, AirlockError } from '@airlock/sdk'
import type { Command } from 'commander'
import { copyIn } from '../run/copy-in.ts'
import { copyOut } from '../run/copy-out.ts'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { withProgress } from '../text/progress.ts'
import type { Tally } from '../text/tally.ts'
import { formatBytes } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineCp(command: Command, context: Context): void {
  withJson(command)
    .argument('<from>', 'a local path, <sandbox>:<path>, or - for stdin')
    .argument('<to>', 'a local path, <sandbox>:<path>, or - for stdout')
    .addHelpText('after', '\nExamples: airlock cp ./src scratch:/workspace/src\n          airlock cp scratch:out.csv -')
    .action(async (from: string, to: string, options: JsonOption) => {
      const { terminal } = context
      const tally: Tally = { files: 0, bytes: 0, skipped: [] }
      const label = (): string => `${tally.files} files, ${formatBytes(tally.bytes)}`
      await withProgress(terminal, label, async () => copy(context, { from, to }, tally))
      for (const path of tally.skipped) terminal.note(`skipped ${path}: neither a file nor a directory`)
      if (options.json === true && to !== '-') await terminal.printJson({ from, to, ...tally })
    })
}

async function copy(
  context: Context,
  { from, to }: { readonly from: string; readonly to: string },
  tally: Tally,
): Promise<void> {
  const source = parseRemote(from)
  const target = parseRemote(to)
  if ((source === undefined) === (target === undefined))
    throw new AirlockError('invalid_request', 'One side must be in a sandbox and the other must not.', {
      hint: 'Write <sandbox>:<path> for the one, and ./a:b for a local path with a colon.',
    })
  const airlock = new Airlock()
  if (target) {
    const sandbox = await findSandbox(airlock, target.sandbox)
    return copyIn(sandbox.files, { from, to: target.path }, tally)
  }
  const sandbox = await findSandbox(airlock, source?.sandbox ?? '')
  return copyOut(sandbox.files, { from: source?.path ?? '', to, terminal: context.terminal }, tally)
}

function parseRemote(text: string): { readonly sandbox: string; readonly path: string } | undefined {
  const [, sandbox, path] = /^([a-z0-9][a-z0-9._-]*):(.*)$/s.exec(text) ?? []
  return sandbox === undefined ? undefined : { sandbox, path: path === undefined || path === '' ? '/workspace' : path }
}
