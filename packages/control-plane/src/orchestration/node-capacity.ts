import type { NodeCapacity } from '../admission/budgets.ts'
import type { Context } from './context.ts'

/** What this node has for its sandboxes, with what it promises beyond that. */
export function nodeCapacity(of: Pick<Context, 'readiness' | 'capacity' | 'oversubscription'>): NodeCapacity {
  const { memoryBytes, cpus } = of.readiness.node()
  return {
    sandboxes: of.capacity,
    memoryBytes: memoryBytes * of.oversubscription.memory,
    cpus: cpus * of.oversubscription.cpus,
  }
}
