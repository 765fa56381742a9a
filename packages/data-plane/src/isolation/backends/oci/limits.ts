import { AirlockError, DEFAULTS, type Limits } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { LimitChange } from '../../backend.ts'
import { stat } from 'node:fs/promises'
import type { Allocation } from './allocate.ts'
import { wholeBlocks } from './disk.ts'
import { growDisk } from './grow-disk.ts'
import { type GroupLimits, type Groups, GUEST_LIMITS } from './groups/groups.ts'
import { maxPids } from './processes.ts'

/** What the kernel of gVisor may use itself, beside the guest. */
const SENTRY_MEMORY_BYTES = 128 * 1024 * 1024
/** It takes tens of threads of the host for each process inside. */
const SENTRY_THREADS = { each: 32, least: 256, shareOfHost: 1 / 64 } as const

/** Where all of a sandbox is one process, what the guest and the kernel in that process need comes on top. */
export function groupLimits(limits: Limits, isWhole: boolean): GroupLimits {
  const { memoryBytes, pids, cpus } = limits
  if (!isWhole) return { memoryBytes, pids, cpus }
  return {
    memoryBytes: memoryBytes + GUEST_LIMITS.memoryBytes + SENTRY_MEMORY_BYTES,
    pids: pids + GUEST_LIMITS.pids + sentryThreads(pids),
    cpus,
  }
}

/** As many as it needs for all processes that are allowed, as long as no sandbox has more than its share of the host's. */
function sentryThreads(pids: number): number {
  const { each, least, shareOfHost } = SENTRY_THREADS
  return Math.max(least, Math.min(pids * each, Math.floor(maxPids() * shareOfHost)))
}

/** Fails closed: nothing that we start can have more than we have. */
export function assertOpenFiles({ openFiles }: Limits, most: number): void {
  if (openFiles <= most) return
  throw new AirlockError('isolation_unavailable', `On this host a process has at most ${most} open files.`, {
    hint: 'Raise the limit of the server (LimitNOFILE=), or ask for fewer.',
  })
}

interface Living {
  readonly id: string
  readonly disk: string
  readonly groups: Groups
  readonly isWhole: boolean
  readonly maxOpenFiles: number
  readonly allocation: Allocation
  /** Stops it, and answers how to let it go on: nothing, where it stood still before. */
  readonly hold: () => Promise<() => void>
}

/** The contract of the port. The disk is last: it cannot be made smaller again. */
export async function changeLimits(living: Living, { from, to }: LimitChange): Promise<Limits> {
  const { id, groups, isWhole } = living
  assertChangeable(from, to)
  assertOpenFiles(to, living.maxOpenFiles)
  const letGo = groups.lowersByKilling && to.memoryBytes < from.memoryBytes ? await living.hold() : () => undefined
  try {
    await groups.change(id, groupLimits(to, isWhole))
  } finally {
    letGo()
  }
  if (to.diskBytes === from.diskBytes) return to
  try {
    return await withDisk(living, to, to.diskBytes)
  } catch (error) {
    await groups.change(id, groupLimits(from, isWhole))
    throw error
  }
}

/** The file of a disk grows first, so it tells whether anything was begun. */
export async function settleLimits(
  of: Pick<Living, 'id' | 'disk' | 'allocation'> & { readonly log: Log },
  limits: Limits,
): Promise<Limits> {
  const { size } = await stat(of.disk)
  if (size > wholeBlocks(limits.diskBytes)) return withDisk(of, limits, size)
  // A disk from before, when blocks were not set aside, lives on as it is where there is no room for them now.
  await of.allocation
    .allocate(of.disk, size)
    .catch((error: unknown) => of.log.warn('the disk of a sandbox stays sparse', { sandbox: of.id, error }))
  return limits
}

async function withDisk(
  { disk, allocation }: Pick<Living, 'disk' | 'allocation'>,
  limits: Limits,
  diskBytes: number,
): Promise<Limits> {
  const inodes = await growDisk(disk, diskBytes, allocation)
  return { ...limits, diskBytes, inodes: Math.min(DEFAULTS.inodes.max, Math.max(limits.inodes, inodes)) }
}

function assertChangeable(from: Limits, to: Limits): void {
  if (to.diskBytes < from.diskBytes)
    throw new AirlockError('limit_fixed', 'diskBytes: the disk of a living sandbox grows, and never shrinks.')
  if (to.inodes !== from.inodes)
    throw new AirlockError(
      'limit_fixed',
      'inodes: a living sandbox has those that it was made with; more come with disk.',
    )
}
