import { AirlockError, DEFAULTS, inodesFor, type Limits, type SomeLimits } from '@airlock/contract'

/** A file takes a block, and so does an inode that is nothing else: more would only eat the disk. */
const LEAST_BYTES_PER_INODE = 4096

/** What a new sandbox is held to. */
export function fillLimits(asked: SomeLimits): Limits {
  const diskBytes = asked.diskBytes ?? DEFAULTS.diskBytes.default
  return changedLimits(
    {
      memoryBytes: DEFAULTS.memoryBytes.default,
      cpus: DEFAULTS.cpus.default,
      pids: DEFAULTS.pids.default,
      diskBytes,
      inodes: inodesFor(diskBytes),
      openFiles: DEFAULTS.openFiles.default,
      cpuSeconds: null,
    },
    asked,
  )
}

/** What is absent stays as it is. */
export function changedLimits(from: Limits, asked: SomeLimits): Limits {
  const to = {
    memoryBytes: asked.memoryBytes ?? from.memoryBytes,
    cpus: asked.cpus ?? from.cpus,
    pids: asked.pids ?? from.pids,
    diskBytes: asked.diskBytes ?? from.diskBytes,
    inodes: asked.inodes ?? from.inodes,
    openFiles: asked.openFiles ?? from.openFiles,
    cpuSeconds: asked.cpuSeconds === undefined ? from.cpuSeconds : asked.cpuSeconds,
  }
  if (to.inodes * LEAST_BYTES_PER_INODE > to.diskBytes)
    throw new AirlockError('invalid_request', `limits.inodes: at most one for each ${LEAST_BYTES_PER_INODE} diskBytes`)
  return to
}
