import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { addLimitOptions, toLimits, type LimitOptions } from '../options/limit-options.ts'
import { renderFacts } from '../text/table.ts'
import { formatBytes, formatDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineLimits(command: Command, context: Context): void {
  addLimitOptions(withJson(command), 'alone')
    .argument('<sandbox>', 'its id or name')
    .addHelpText('after', '\nWithout options it shows what holds. Disk grows where the host can, and never shrinks.')
    .action(async (target: string, options: LimitOptions & JsonOption) => {
      const { terminal } = context
      const sandbox = await findSandbox(new Airlock(), target)
      const asked = toLimits(options)
      if (Object.keys(asked).length > 0) await sandbox.setLimits(asked)
      if (options.json === true) return terminal.printJson(sandbox.data.limits)
      await terminal.print(renderFacts(terminal, factsOf(sandbox.data)))
    })
}

function factsOf({ limits }: Sandbox['data']): readonly (readonly [string, string])[] {
  const { memoryBytes, cpus, pids, diskBytes, inodes, openFiles, cpuSeconds } = limits
  return [
    ['memory', formatBytes(memoryBytes)],
    ['swap', 'none'],
    ['processors', `${cpus}`],
    ['processes', `${pids}`],
    ['disk', formatBytes(diskBytes)],
    ['inodes', `${inodes}`],
    ['open files', `${openFiles} of each process`],
    ['processor time', cpuSeconds === null ? 'no cap' : formatDuration(cpuSeconds * 1000)],
  ]
}
