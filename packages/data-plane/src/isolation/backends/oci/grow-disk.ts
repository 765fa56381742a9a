import { AirlockError } from '@airlock/contract'
import { readFileSync } from 'node:fs'
import { stat, truncate } from 'node:fs/promises'
import type { Allocation } from './allocate.ts'
import { loopDeviceOf } from './destroy.ts'
import { OWN_INODES, wholeBlocks } from './disk.ts'
import { STAGE } from './paths.ts'
import { mayResizeDisks } from './rights.ts'
import { findTool, requireTool, runTool } from './run-tool.ts'

const LIMIT_MS = 60_000

/**
 * The file system is mounted once more, for a moment and where only this script sees it, for the kernel grows only what is
 * mounted. It is the same file system: what is written in the sandbox meanwhile is in both.
 */
const SCRIPT = `mount -t ext4 -o nosuid,nodev,noatime,noinit_itable "$1" "$2"
resize2fs "$1" >&2
stat -f -c %c "$2"`

/**
 * Makes the disk of a living sandbox larger, and answers how many inodes it has then: they come with the size. Done again after
 * it was broken off, it goes on.
 */
export async function growDisk(disk: string, bytes: number, allocation: Allocation): Promise<number> {
  const device = loopDeviceOf(disk)
  if (!canGrowDisks())
    throw new AirlockError('limit_fixed', `diskBytes: this host cannot make a disk larger that is in use.`, {
      hint: 'It takes losetup, resize2fs and the capability SYS_RESOURCE. Or create another sandbox.',
    })
  const [losetup, unshare] = [requireTool('losetup', 'mount'), requireTool('unshare', 'util-linux')]
  if (device === undefined) throw new AirlockError('sandbox_ended', 'The disk of the sandbox is not mounted any more.')
  await allocation.allocate(disk, wholeBlocks(bytes))
  const { size } = await stat(disk)
  if (size < wholeBlocks(bytes)) await truncate(disk, wholeBlocks(bytes))
  await run(losetup, ['--set-capacity', `/dev/${device}`])
  const mounts = ['--mount', '--propagation', 'private', '/bin/sh', '-euc', SCRIPT, 'grow']
  const inodes = Number(await run(unshare, [...mounts, `/dev/${device}`, STAGE]))
  return Math.max(0, inodes - OWN_INODES)
}

export function canGrowDisks(): boolean {
  const tools = ['losetup', 'resize2fs'].every((name) => findTool(name) !== undefined)
  return tools && mayResizeDisks(readFileSync('/proc/self/status', 'utf8'))
}

async function run(file: string, args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runTool(file, args, LIMIT_MS)
  if (exitCode === 0) return stdout
  throw new AirlockError('disk_full', 'The disk of the sandbox could not be made larger.', { cause: stderr })
}
