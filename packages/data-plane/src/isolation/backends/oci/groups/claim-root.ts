import { AirlockError } from '@airlock/contract'
import { mkdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isSystemError } from '../system-error.ts'
import { pidsIn, readKernel, writeKernel } from './tree.ts'
import { CONTROLLERS_V2 } from './v2.ts'

const ENABLE = CONTROLLERS_V2.map((name) => `+${name}`).join(' ')
/** Where the processes go that were in a group which is to pass its controllers on. */
const LEAF = 'airlock-host'
/** Processes may fork while they are moved. */
const ROUNDS = 20

/**
 * Finds the group of version 2 below which ours may be, as a directory, and makes it pass its controllers on: the one
 * that was delegated to us, else the root of the tree, else our own group, as in a container.
 */
export function claimRoot(mountPoint: string, delegated?: string): string {
  if (delegated !== undefined) return passOn(join(mountPoint, delegated))
  try {
    writeKernel(join(mountPoint, 'cgroup.subtree_control'), ENABLE)
    return mountPoint
  } catch {
    // Not the root of the host, or not ours to change: using our own group fails closed if that is not possible.
    return passOn(ownGroup(mountPoint))
  }
}

/** Version 2 lets no group hold processes and pass controllers on: those that are in it move to a leaf. */
function passOn(group: string): string {
  throwOnMissing(readKernel(join(group, 'cgroup.controllers')) ?? '')
  for (let round = 1; ; round++)
    try {
      writeKernel(join(group, 'cgroup.subtree_control'), ENABLE)
      return group
    } catch (error) {
      if (!isSystemError(error, 'EBUSY') || round > ROUNDS) throw error
      vacate(group)
    }
}

function vacate(group: string): void {
  const leaf = join(group, LEAF)
  mkdirSync(leaf, { recursive: true })
  for (const pid of pidsIn(group))
    try {
      writeKernel(join(leaf, 'cgroup.procs'), String(pid))
    } catch (error) {
      // It ended meanwhile.
      if (!isSystemError(error, 'ESRCH')) throw error
    }
}

function throwOnMissing(offered: string): void {
  const missing = CONTROLLERS_V2.filter((name) => !offered.trim().split(' ').includes(name))
  if (missing.length > 0)
    throw new AirlockError('isolation_unavailable', `cgroup controllers are missing: ${missing.join(', ')}.`)
}

/** After a restart we may be in the leaf already. */
function ownGroup(mountPoint: string): string {
  const own = /^0::(.*)$/mu.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/'
  return join(mountPoint, basename(own) === LEAF ? dirname(own) : own)
}
