import type { NodeCapacity } from '../spend/reserve.ts'
import type { Context } from '../app/context.ts'

/** What this node has for its sandboxes, with what it promises beyond that. */
export function nodeCapacity(of: Pick<Context, 'readiness' | 'capacity' | 'oversubscription'>): NodeCapacity {
  const { memoryBytes, cpus, disk } = of.readiness.node()
  const roomBytes = Math.max(0, disk.freeBytes + disk.takenBytes - disk.reserveBytes)
  return {
    sandboxes: of.capacity,
    memoryBytes: memoryBytes * of.oversubscription.memory,
    diskBytes: Math.floor(roomBytes * of.oversubscription.disk),
    isDiskFull: disk.freeBytes < disk.reserveBytes,
    cpus: cpus * of.oversubscription.cpus,
  }
}
