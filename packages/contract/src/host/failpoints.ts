import type { Log, LogLevel } from '@airlock/std'
import { AirlockError } from '../errors.ts'

/**
 * Where a test may kill one of our processes, in the order in which a request passes. None is armed unless `failpoint` is
 * configured; at the log level `debug` each says when it was passed. A test compares this table with the code.
 */
export const FAILPOINTS = [
  'approval.used',
  'create.admitted',
  'create.row-written',
  'create.recorded',
  'create.permit-claimed',
  'create.state-written',
  'create.groups-made',
  'create.disk-made',
  'create.launched',
  'create.guest-attached',
  'create.started',
  'create.activated',
  'command.recorded',
  'command.row-written',
  'command.accepted',
  'command.running',
  'command.exited',
  'command.result-written',
  'step.recorded',
  'step.row-written',
  'step.accepted',
  'step.running',
  'step.exited',
  'step.result-written',
  'job.row-written',
  'job.claimed',
  'job.sandbox-named',
  'job.sandbox-made',
  'job.files-written',
  'job.command-named',
  'job.command-begun',
  'artifact.row-written',
  'artifact.staged',
  'artifact.stored',
  'artifact.row-ready',
  'artifact.row-removed',
  'job.result-written',
  'job.torn-down',
  'job.ended',
  'model.row-written',
  'model.recorded',
  'model.sent',
  'model.begun',
  'model.ended',
  'model.closed',
  'pause.frozen',
  'pause.row-written',
  'resume.thawed',
  'limit.reserved',
  'limit.state-written',
  'limit.applied',
  'limit.row-written',
  'kill.row-written',
  'kill.frozen',
  'terminate.marked',
  'terminate.sealed',
  'terminate.frozen',
  'terminate.killed',
  'terminate.unmounted',
  'terminate.destroyed',
  'terminate.row-written',
  'record.received',
  'record.written',
  'record.synced',
] as const
export type FailpointName = (typeof FAILPOINTS)[number]

export const PROCESSES = ['supervisor', 'recorder', 'keys', 'data-plane', 'doors', 'control-plane'] as const
export type ProcessName = (typeof PROCESSES)[number]

/** Called at each failpoint; does nothing unless a test armed it or the steps are traced. */
export type Failpoint = (name: FailpointName) => Promise<void>

interface FailpointOwner {
  readonly self: ProcessName
  kill(victim: ProcessName): Promise<void>
  /** What stands in a file after `start`, and removes it. */
  takeFile(path: string, start: string): string | undefined
  /** Told of every failpoint that is passed. */
  readonly onStep?: ((name: FailpointName) => void) | undefined
}

/**
 * Makes the failpoint function of one process. `armed` is `<failpoint>:<victim>`, which fires once in a life, or
 * `@<file>`: then that is what stands in the file, each time a test puts it there. A process that is its own victim kills
 * itself; another victim is killed by the supervisor, which answers when it is done.
 */
export function armFailpoint(armed: string | undefined, owner: FailpointOwner): Failpoint {
  const { onStep } = owner
  if (armed === undefined) return async (name) => onStep?.(name)
  const victimAt = isArmedInFile(armed) ? armedInFile(armed.slice(1), owner) : armedFromStart(armed)
  return async (name) => {
    onStep?.(name)
    const victim = victimAt(name)
    if (victim === owner.self) process.kill(process.pid, 'SIGKILL')
    else if (victim) await owner.kill(victim)
  }
}

/** Whether a test arms failpoints of a living server, and so again and again. */
export function isArmedInFile(armed: string | null | undefined): boolean {
  return armed?.startsWith('@') ?? false
}

type VictimAt = (name: FailpointName) => ProcessName | undefined

function armedFromStart(armed: string): VictimAt {
  const [target = '', victimName = ''] = armed.split(':')
  const victim = parseVictim(armed, victimName)
  if (!FAILPOINTS.some((name) => name === target)) throw noSuchFailpoint(armed)
  let fired = false
  return (name) => {
    if (fired || name !== target) return undefined
    fired = true
    return victim
  }
}

function armedInFile(path: string, owner: FailpointOwner): VictimAt {
  return (name) => {
    const victim = owner.takeFile(path, `${name}:`)
    return victim === undefined ? undefined : parseVictim(`${name}:${victim}`, victim)
  }
}

function parseVictim(armed: string, victimName: string): ProcessName {
  const victim = PROCESSES.find((name) => name === victimName)
  if (!victim) throw noSuchFailpoint(armed)
  return victim
}

function noSuchFailpoint(armed: string): AirlockError {
  return new AirlockError('config_invalid', `There is no failpoint ${armed}.`)
}

/**
 * A trace of the steps for who looks where the time goes: one line of the debug log each, with a clock that all processes
 * of a machine share. Undefined, and so without cost, at any other level.
 */
export function traceSteps(log: Log, level: LogLevel): FailpointOwner['onStep'] {
  if (level !== 'debug') return undefined
  return (step) => log.debug('step', { step, atMs: Number(process.hrtime.bigint()) / 1e6 })
}
