import { AirlockError, type Failpoint } from '@airlock/contract'
import { sleep } from '@airlock/std'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Groups } from './groups/groups.ts'
import type { SandboxPaths } from './paths.ts'
import { isSystemError } from './system-error.ts'
import type { UidRanges } from './uid-ranges.ts'

const LIMIT_MS = 10_000
const FREEZE_LIMIT_MS = 500
/** How long the killed may take to go before they are killed again. */
const PATIENCE_MS = 30
const MAX_PATIENCE_MS = 300

export interface Destruction {
  readonly id: string
  readonly paths: SandboxPaths
  readonly groups: Groups
  readonly uidRanges: UidRanges
  readonly failpoint: Failpoint
}

/**
 * Leaves nothing of a sandbox, whatever there is of it: a whole one, half a start, a launcher without a sandbox. Writes
 * nothing to any disk. The order is that of trust: the kernel first, and only what it no longer holds is removed.
 */
export async function destroySandbox(target: Destruction): Promise<void> {
  const { id, paths, groups, uidRanges, failpoint } = target
  groups.freeze(id)
  await failpoint('terminate.frozen')
  await killAll(groups, id)
  await failpoint('terminate.killed')
  await loopDeviceGone(paths.disk)
  await failpoint('terminate.unmounted')
  await rm(paths.runtimeState, { recursive: true, force: true })
  // Before the directory and never without it: a claim whose directory is gone may be another's at any time.
  if (existsSync(paths.dir)) uidRanges.release(paths.dir)
  await rm(paths.dir, { recursive: true, force: true })
}

/**
 * Freezing first means that nobody runs while the list is read and signalled; on version 1 the signal works once thawed.
 * Repeated until the groups could be removed, which the kernel allows only when they are empty.
 */
async function killAll(groups: Groups, id: string): Promise<void> {
  const until = performance.now() + LIMIT_MS
  for (let patienceMs = PATIENCE_MS; ; patienceMs = Math.min(patienceMs * 2, MAX_PATIENCE_MS)) {
    await freezeAll(groups, id)
    groups.refuseForks(id)
    groups.kill(id)
    groups.thaw(id)
    if (await isRemoved(groups, id, patienceMs)) return
    if (performance.now() > until) break
  }
  throw new AirlockError('internal', `Processes of ${id} would not die: ${groups.pids(id).join(', ')}.`)
}

/** Dead but not yet gone needs no second freeze. */
async function isRemoved(groups: Groups, id: string, withinMs: number): Promise<boolean> {
  for (const until = performance.now() + withinMs; ; await sleep(1)) {
    if (groups.remove(id)) return true
    if (performance.now() > until) return false
  }
}

/** Bounded: a process in the kernel may take its time, and the kill does not depend on it. */
async function freezeAll(groups: Groups, id: string): Promise<void> {
  const until = performance.now() + FREEZE_LIMIT_MS
  groups.freeze(id)
  while (!groups.isFrozen(id) && groups.pids(id).length > 0 && performance.now() < until) await sleep(1)
}

/** The mounts of a sandbox are only in its own namespace, which dies with its last process; the loop device follows. */
async function loopDeviceGone(disk: string): Promise<void> {
  const until = performance.now() + LIMIT_MS
  for (;;) {
    const device = loopDeviceOf(disk)
    if (device === undefined) return
    if (performance.now() > until) throw new AirlockError('internal', `The device ${device} still holds ${disk}.`)
    await sleep(1)
  }
}

/** The loop device on this disk, if any. */
export function loopDeviceOf(disk: string): string | undefined {
  if (!existsSync('/sys/block')) return undefined
  return readdirSync('/sys/block')
    .filter((device) => device.startsWith('loop'))
    .find((device) => isBackedBy(`/sys/block/${device}`, disk))
}

/** Whether the block device `major:minor` is this disk. */
export function isDiskOf(device: string, disk: string): boolean {
  return isBackedBy(`/sys/dev/block/${device}`, disk)
}

/**
 * Known by the sandbox's id and the name of the file: where the state is a mount of its own, the kernel tells the path from
 * there and not from the root.
 */
function isBackedBy(device: string, disk: string): boolean {
  const name = `/${basename(dirname(disk))}/${basename(disk)}`
  return (
    backingFile(device)
      ?.replace(/ \(deleted\)$/u, '')
      .endsWith(name) ?? false
  )
}

function backingFile(device: string): string | undefined {
  try {
    return readFileSync(`${device}/loop/backing_file`, 'utf8').trim()
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENXIO', 'ENODEV')) return undefined
    throw error
  }
}
