import { AirlockError } from '@airlock/contract'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Groups } from './groups.ts'
import { kindOf, readHierarchies, type Hierarchy } from './hierarchies.ts'
import { readKernel, writeKernel } from './tree.ts'
import { GroupsV1 } from './v1.ts'
import { CONTROLLERS_V2, GroupsV2 } from './v2.ts'

/**
 * The control groups of this host. They are named after the state directory, so that two servers on one host never take
 * each other's sandboxes for their own.
 */
export function findGroups(stateDir: string): Groups {
  const hierarchies = readHierarchies()
  const kind = kindOf(hierarchies)
  const parent = `airlock-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`
  if (kind === undefined) throw new AirlockError('isolation_unavailable', 'No cgroup hierarchy is mounted.')
  if (kind !== 'v2') return new GroupsV1(kind, hierarchies, parent)
  const unified = hierarchies.find(({ version }) => version === 2)
  if (!unified) throw new AirlockError('isolation_unavailable', 'No cgroup hierarchy is mounted.')
  const root = rootOf(unified)
  throwOnMissing(readKernel(join(root, 'cgroup.controllers')) ?? '')
  return new GroupsV2({ root, mountPoint: unified.mountPoint }, parent)
}

function throwOnMissing(offered: string): void {
  const missing = CONTROLLERS_V2.filter((name) => !offered.trim().split(' ').includes(name))
  if (missing.length > 0)
    throw new AirlockError('isolation_unavailable', `cgroup controllers are missing: ${missing.join(', ')}.`)
}

/** The root of the tree where we may pass controllers on, else the group that was delegated to us. */
function rootOf(unified: Hierarchy): string {
  try {
    writeKernel(join(unified.mountPoint, 'cgroup.subtree_control'), CONTROLLERS_V2.map((name) => `+${name}`).join(' '))
    return unified.mountPoint
  } catch {
    // Not ours to change, or busy: what is left is our own group, and using it fails closed if that is not possible.
    const own = readFileSync('/proc/self/cgroup', 'utf8').match(/^0::(.*)$/mu)?.[1] ?? '/'
    return join(unified.mountPoint, own)
  }
}
