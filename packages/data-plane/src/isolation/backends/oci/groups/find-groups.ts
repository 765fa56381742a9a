import { AirlockError } from '@airlock/contract'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import { isSystemError } from '../system-error.ts'
import { claimRoot } from './claim-root.ts'
import type { Groups } from './groups.ts'
import { kindOf, readHierarchies, type Hierarchy } from './hierarchies.ts'
import { GroupsV1 } from './v1.ts'
import { GroupsV2 } from './v2.ts'

/**
 * The control groups of this host. They are named after the state directory, so that two servers on one host never take
 * each other's sandboxes for their own. `delegated` is the group of version 2 below which they must be, if any.
 */
export function findGroups(stateDir: string, delegated?: string): Groups {
  const hierarchies = readHierarchies()
  const kind = kindOf(hierarchies)
  const parent = `airlock-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`
  if (kind === undefined) throw new AirlockError('isolation_unavailable', 'No cgroup hierarchy is mounted.')
  throwOnReadOnly(hierarchies)
  if (kind !== 'v2') return new GroupsV1(kind, hierarchies, parent)
  const unified = hierarchies.find(({ version }) => version === 2)
  if (!unified) throw new AirlockError('isolation_unavailable', 'No cgroup hierarchy is mounted.')
  const { mountPoint } = unified
  if (delegated !== undefined) throwUnlessThere(join(mountPoint, delegated))
  // Sandboxes that were started before anything was delegated to us are still where they were: they end there.
  const wereAtRoot = existsSync(join(mountPoint, parent))
  return new GroupsV2({ root: claimRoot(mountPoint, wereAtRoot ? undefined : delegated), mountPoint }, parent)
}

function throwUnlessThere(group: string): void {
  if (existsSync(group)) return
  throw new AirlockError('isolation_unavailable', `The control group ${group} is not there.`, {
    hint: 'Start the unit that it belongs to, or unset AIRLOCK_CGROUP.',
  })
}

/** Containers see their own groups read-only, unless they are made writable. */
function throwOnReadOnly(hierarchies: readonly Hierarchy[]): void {
  const mountPoint = (hierarchies.find(({ controllers }) => controllers.includes('memory')) ?? hierarchies[0])
    ?.mountPoint
  try {
    if (mountPoint !== undefined) accessSync(mountPoint, constants.W_OK)
  } catch (cause) {
    if (!isSystemError(cause, 'EROFS')) throw cause
    throw new AirlockError('isolation_unavailable', `Control groups are mounted read-only at ${mountPoint}.`, {
      hint: 'In a container see docs/deploy.md.',
      cause,
    })
  }
}
