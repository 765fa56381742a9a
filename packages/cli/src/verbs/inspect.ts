import { Airlock, type Command as Ran, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import { exitCodeOf } from '../run/attach.ts'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { formatLimits } from '../options/limit-options.ts'
import { stateCell } from '../text/state-cell.ts'
import { renderFacts, renderTable, type Cell } from '../text/table.ts'
import { formatDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const COMMANDS = 10

export function defineInspect(command: Command, context: Context): void {
  withJson(command)
    .argument('<sandbox>', 'its id or name')
    .action(async (target: string, options: JsonOption) => {
      const { terminal } = context
      const sandbox = await findSandbox(new Airlock(), target)
      const commands = (await sandbox.commands({ limit: COMMANDS })).items
      if (options.json === true) return terminal.printJson({ ...sandbox.data, commands })
      await terminal.print(renderFacts(terminal, factsOf(sandbox.data)))
      if (commands.length === 0) return
      const head = ['COMMAND', 'STATE', 'TOOK', 'ARGV']
      await terminal.print(`\n${renderTable(terminal, head, commands.map(commandRow))}`)
    })
}

function factsOf(data: Sandbox['data']): readonly (readonly [string, string | Cell])[] {
  const { limits, isolation } = data
  const labels = Object.entries(data.labels).map(([key, value]) => `${key}=${value}`)
  return [
    ['id', data.id],
    ['name', data.name ?? '-'],
    ['state', stateCell(data)],
    ...(data.error ? ([['error', { text: `${data.error.message} (${data.error.code})`, style: 'red' }]] as const) : []),
    ['agent', `${data.agent} of ${data.tenant}, generation ${data.generation}`],
    ['template', data.template],
    ['node', data.node],
    ['labels', labels.join(', ') || '-'],
    ['limits', formatLimits(limits)],
    ['doors', data.doors.join(', ') || '-'],
    ...(data.models.length === 0 ? [] : modelFacts(data)),
    ...data.mounts.map(({ target, path, mode }) => ['mount', `${target} is ${path} (${mode})`] as const),
    ['created', data.createdAt],
    ['last used', data.lastActiveAt],
    ...(data.endedAt === null
      ? ([
          ['expires', data.expiresAt],
          ...(data.state === 'paused' ? [['paused', `${data.pausedAt} (${data.pausedBy})`] as const] : []),
          ['ends', `${data.endsAt} at the latest`],
        ] as const)
      : ([['ended', data.endedAt]] as const)),
    ...(isolation ? isolationFacts(isolation) : []),
  ]
}

function modelFacts({ models, modelLimits }: Sandbox['data']): readonly (readonly [string, string])[] {
  const { calls, tokens, dollars, concurrentCalls } = modelLimits
  const caps = [
    calls === null ? [] : `${calls} calls`,
    tokens === null ? [] : `${tokens} tokens`,
    dollars === null ? [] : `$${dollars}`,
    `${concurrentCalls} at once`,
  ].flat()
  return [
    ['models', models.join(', ')],
    ['model caps', caps.join(', ')],
  ]
}

function isolationFacts(isolation: NonNullable<Sandbox['data']['isolation']>): readonly (readonly [string, string])[] {
  const { first, count } = isolation.uidRange
  return [
    ['isolation', `${isolation.backend} ${isolation.runtime}, tier ${isolation.tier}, seccomp ${isolation.seccomp}`],
    ['namespaces', isolation.namespaces.join(', ')],
    ['network', isolation.network],
    ['uids', `${first} to ${first + count - 1}`],
    ...(isolation.root === null ? [] : [['root', isolation.root] as const]),
    ...(isolation.probe === null ? [] : [['probe', probeFact(isolation.probe)] as const]),
    ['enforced', `${isolation.limits.join(', ')} (cgroup ${isolation.cgroup})`],
  ]
}

function probeFact({ tried, passed }: { readonly tried: number; readonly passed: readonly string[] }): string {
  return passed.length === 0 ? `${tried} forbidden system calls tried, none works` : `${passed.join(', ')} work`
}

function commandRow(command: Ran): readonly string[] {
  const state = command.state === 'exited' ? `exited ${command.signal ?? exitCodeOf(command)}` : command.state
  const took = command.durationMs === null ? '-' : formatDuration(command.durationMs)
  return [command.id, state, took, command.argv.join(' ').slice(0, 80)]
}
