import type { Attack } from './attack.ts'
import { FILE_ATTACKS } from './files.ts'
import { KERNEL_ATTACKS } from './kernel.ts'
import { NEIGHBOUR_ATTACKS } from './neighbours.ts'
import { RESOURCE_ATTACKS } from './resources.ts'

/** Every attack that is tried by a program inside. */
export const ATTACKS: readonly Attack[] = [
  ...KERNEL_ATTACKS,
  ...NEIGHBOUR_ATTACKS,
  ...FILE_ATTACKS,
  ...RESOURCE_ATTACKS,
].toSorted((a, b) => (a.id < b.id ? -1 : 1))
