import { AirlockError } from './errors.ts'

/**
 * Where a test may kill one of our processes, in the order in which a request passes. Nothing else happens at a
 * failpoint, and none is armed unless `failpoint` is configured. A test compares this table with the code.
 */
export const FAILPOINTS = [
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
  'terminate.marked',
  'terminate.frozen',
  'terminate.killed',
  'terminate.unmounted',
  'terminate.destroyed',
  'terminate.row-written',
  'record.received',
  'record.written',
] as const
export type FailpointName = (typeof FAILPOINTS)[number]

export const PROCESSES = ['supervisor', 'recorder', 'data-plane', 'control-plane'] as const
export type ProcessName = (typeof PROCESSES)[number]

/** Called at each failpoint; does nothing unless a test armed it. */
export type Failpoint = (name: FailpointName) => Promise<void>

/**
 * Makes the failpoint function of one process. `armed` is `<failpoint>:<victim>`. A process that is its own victim
 * kills itself; another victim is killed by the supervisor, which answers when it is done. Fires once in a life.
 */
export function armFailpoint(
  armed: string | undefined,
  owner: { readonly self: ProcessName; kill(victim: ProcessName): Promise<void> },
): Failpoint {
  if (armed === undefined) return async () => {}
  const [target, victimName] = armed.split(':')
  const victim = PROCESSES.find((name) => name === victimName)
  if (!FAILPOINTS.some((name) => name === target) || !victim)
    throw new AirlockError('config_invalid', `There is no failpoint ${armed}.`)
  let fired = false
  return async (name) => {
    if (fired || name !== target) return
    fired = true
    if (victim === owner.self) process.kill(process.pid, 'SIGKILL')
    else await owner.kill(victim)
  }
}
