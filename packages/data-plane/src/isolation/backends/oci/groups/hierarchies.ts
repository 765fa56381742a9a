import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One mounted cgroup hierarchy. Version 1 has several, each with its controllers; version 2 is one tree. */
export interface Hierarchy {
  readonly version: 1 | 2
  readonly mountPoint: string
  /** Of version 1, as mounted (`cpu` and `cpuacct` may share one); of version 2, what its root offers. */
  readonly controllers: readonly string[]
}

export type CgroupKind = 'v1' | 'v2' | 'hybrid'

/** The cgroup hierarchies this process sees, each once. */
export function readHierarchies(): readonly Hierarchy[] {
  return parseHierarchies(readFileSync('/proc/self/mountinfo', 'utf8'), (mountPoint) =>
    readFileSync(join(mountPoint, 'cgroup.controllers'), 'utf8').trim().split(/\s+/u),
  )
}

export function parseHierarchies(
  mountinfo: string,
  offers: (mountPoint: string) => readonly string[],
): readonly Hierarchy[] {
  const found = new Map<string, Hierarchy>()
  for (const line of mountinfo.split('\n')) {
    const [before, after] = line.split(' - ')
    const mountPoint = unescapeOctal(before?.split(' ')[4] ?? '')
    const [type, , options = ''] = after?.split(' ') ?? []
    if (type === 'cgroup2') found.set('unified', { version: 2, mountPoint, controllers: offers(mountPoint) })
    if (type !== 'cgroup') continue
    const controllers = options.split(',').filter((option) => option !== 'rw' && option !== 'ro')
    if (!found.has(options)) found.set(options, { version: 1, mountPoint, controllers })
  }
  return [...found.values()]
}

/** Hybrid: the controllers are on version 1 and an empty version 2 tree is mounted beside them. */
export function kindOf(hierarchies: readonly Hierarchy[]): CgroupKind | undefined {
  const unified = hierarchies.some(({ version }) => version === 2)
  const memoryOnV1 = hierarchies.some(({ version, controllers }) => version === 1 && controllers.includes('memory'))
  if (memoryOnV1) return unified ? 'hybrid' : 'v1'
  return unified ? 'v2' : undefined
}

/** The kernel writes blanks in mount points as \040 and the like. */
export function unescapeOctal(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/gu, (_, digits: string) => String.fromCodePoint(Number.parseInt(digits, 8)))
}
