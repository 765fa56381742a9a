import { DEFAULTS } from '@airlock/contract/defaults'
import type { CreateOptions } from '@airlock/sdk'
import { Option, type Command } from 'commander'
import { addLimitOptions, toLimits, type LimitOptions } from './limit-options.ts'
import { addModelOptions, assertHasModel, type ModelOptions, toModelLimits } from './model-options.ts'
import { toWorktree, type WorktreeOptions } from './worktree-options.ts'
import { collectPairs } from '../text/pairs.ts'
import { durationWithin, formatDuration } from '../text/units.ts'

type DoorName = NonNullable<CreateOptions['doors']>[number]

export interface SandboxOptions extends LimitOptions, ModelOptions, WorktreeOptions {
  readonly name?: string
  readonly template?: string
  readonly agent?: string
  readonly tier?: 'standard' | 'strict'
  readonly door?: DoorName[]
  readonly ttl?: number
  readonly idle?: number
  readonly pauseWhenIdle?: boolean
  readonly label?: Readonly<Record<string, string>>
}

/** The options of whatever makes a sandbox. Their defaults are the server's. */
export function addSandboxOptions(command: Command, template = 'base'): Command {
  const named = command
    .optionsGroup('The sandbox:')
    .option('--template <template>', `what it is made from (default: ${template})`)
    .option('--name <name>', 'a name, unique among the living sandboxes of its agent')
    .option('--agent <agent>', 'who it runs for (default: the agent of your key, or "default" if it is bound to none)')
    .addOption(
      new Option('--tier <tier>', 'how it is isolated, at least (default: as its template says)').choices([
        'standard',
        'strict',
      ]),
    )
    .option('--door <door>', 'a door beside control, such as egress; may be given several times', collectDoors)
    .option(
      '--ttl <duration>',
      `life after its last use (default: ${formatDuration(DEFAULTS.ttlMs.default)})`,
      durationWithin(DEFAULTS.ttlMs),
    )
    .option(
      '--idle <duration>',
      `longest time without use (default: ${formatDuration(DEFAULTS.idleMs.default)})`,
      durationWithin(DEFAULTS.idleMs),
    )
    .option('--pause-when-idle', 'pause it then, instead of ending it; its next use resumes it')
    .option(
      '--worktree <dir[@commit]>',
      'a copy of a git repository of the server, at /workspace/repo; it needs a grant',
    )
    .option('--label <key=value>', 'a label; may be given several times', collectPairs)
    .optionsGroup('Its models:')
  const withModels = addModelOptions(named).optionsGroup('Its limits:')
  return addLimitOptions(withModels, 'with defaults').optionsGroup('Options:')
}

export function toCreateOptions(options: SandboxOptions): CreateOptions {
  const limits = toLimits(options)
  // A template of one's own may name the models.
  if (options.template === undefined) assertHasModel(options)
  const modelLimits = toModelLimits(options)
  return defined({
    name: options.name,
    template: options.template,
    agent: options.agent,
    tier: options.tier,
    doors: options.door,
    labels: options.label,
    ttlMs: options.ttl,
    idleMs: options.idle,
    onIdle: options.pauseWhenIdle === true ? ('pause' as const) : undefined,
    limits: Object.keys(limits).length > 0 ? limits : undefined,
    models: options.model && [...options.model],
    modelLimits: Object.keys(modelLimits).length > 0 ? modelLimits : undefined,
    worktree: options.worktree === undefined ? undefined : toWorktree(options.worktree),
  })
}

/** The server says which doors it has. */
function collectDoors(text: string, before: DoorName[] = []): DoorName[] {
  return [...before, text as DoorName]
}

/** Without the fields that were not given: the server has the defaults. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given: object = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  return given
}
