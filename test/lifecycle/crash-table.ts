import { FAILPOINTS, type FailpointName, PROCESSES, type ProcessName } from '@airlock/contract'

export interface CrashCase {
  readonly failpoint: FailpointName
  readonly victim: ProcessName
  /** While the server starts, or in a request. */
  readonly when: 'start' | 'request'
}

/** Where the doors of a sandbox are not opened yet, are being opened, are open, are being shut, and are shut. */
const WITH_DOORS: readonly FailpointName[] = [
  'create.recorded',
  'create.started',
  'create.activated',
  'terminate.marked',
  'terminate.destroyed',
]

/** A server that starts writes records, and nothing else of the table. */
const AT_START = FAILPOINTS.filter((name) => name.startsWith('record.'))

/** The keys take part in calls of models alone: `packages/keys/src/keys-process.test.ts` kills them. */
export const VICTIMS: readonly ProcessName[] = PROCESSES.filter((name) => name !== 'keys')

/** Every failpoint and every process that takes part in it. */
export const CRASHES: readonly CrashCase[] = VICTIMS.flatMap((victim) => [
  ...failpointsFor(victim).map((failpoint) => ({ failpoint, victim, when: 'request' as const })),
  ...(victim === 'doors' ? [] : AT_START).map((failpoint) => ({ failpoint, victim, when: 'start' as const })),
])

export const crashName = ({ failpoint, victim, when }: CrashCase): string =>
  `${failpoint} of the ${victim}${when === 'start' ? ' at its start' : ''}`

/** Cases that failed once. */
export const FAILED_ONCE: readonly string[] = [
  'command.exited of the recorder',
  'create.activated of the control-plane',
  'terminate.destroyed of the control-plane',
]

/**
 * The doors take part in two moments of a sandbox, and in nothing else. Approvals have a test of their own in test/security, calls of
 * models one in test/models.
 */
function failpointsFor(victim: ProcessName): readonly FailpointName[] {
  const walked = FAILPOINTS.filter((name) => name !== 'approval.used' && !name.startsWith('model.'))
  return victim === 'doors' ? WITH_DOORS : walked
}
