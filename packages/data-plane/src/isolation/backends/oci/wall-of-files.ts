import type { EffectiveIsolation } from '@airlock/contract'
import { INSIDE } from '@airlock/contract/guest'
import { existsSync } from 'node:fs'
import type { Bundle, BundleMount } from './bundle.ts'
import type { Mount } from './mounts.ts'
import type { RuntimeKind } from './runtime.ts'

/** That part of the isolation, as it was found. */
export interface FileWall {
  readonly root: NonNullable<EffectiveIsolation['root']>
  readonly unmasked: string[]
  readonly mountFaults: string[]
}

/** What a sandbox was to see of files: the bundle of its runtime, and what the launcher put below `/grants` before. */
export interface AskedFiles {
  readonly bundle: Pick<Bundle, 'mounts' | 'linux'>
  /** Targets of what was granted for writing. */
  readonly writableGrants: readonly string[]
}

/** Compares what the kernel shows of the first process with what was asked for. Names every difference. */
export function compareFiles(found: readonly Mount[], asked: AskedFiles, kind: RuntimeKind): FileWall {
  const root = rootOf(found)
  // Whatever is mounted inside gVisor is an invention of its kernel, which itself has an empty root and nothing else.
  if (kind === 'runsc') return { root, unmasked: [], mountFaults: found.flatMap(sentryFaults) }
  const top = topmost(found)
  const { maskedPaths, readonlyPaths } = asked.bundle.linux
  const destinations = asked.bundle.mounts.map(({ destination }) => destination)
  const known = new Set(['/', ...DEVICES, ...maskedPaths, ...readonlyPaths, ...destinations])
  const strangers = [...top.values()].filter(({ mountPoint }) => !known.has(mountPoint))
  return {
    root,
    unmasked: maskedPaths.filter((path) => existsSync(path) && (top.get(path)?.type ?? 'proc') === 'proc'),
    mountFaults: [
      ...asked.bundle.mounts.flatMap((mount) => faultsOf(mount, top.get(mount.destination))),
      ...readonlyPaths.filter((path) => existsSync(path) && !isReadOnly(top.get(path))).map(saysWritable),
      ...strangers.flatMap((mount) => strangerFaults(mount, asked)),
    ],
  }
}

function rootOf(found: readonly Mount[]): FileWall['root'] {
  return isReadOnly(topmost(found).get('/')) ? 'read-only' : 'writable'
}

/** The kernel lists mounts in the order in which they were made: the last one at a place covers the others. */
function topmost(found: readonly Mount[]): ReadonlyMap<string, Mount> {
  return new Map(found.map((mount) => [mount.mountPoint, mount]))
}

/** Flags that we ask for and that the kernel shows under the same name. */
const FLAGS = ['ro', 'nosuid', 'nodev', 'noexec'] as const

/** Of these only `ro` means something: there is no program, no device and no set-uid file in them. crun drops the rest. */
const GROUP_TYPES: ReadonlySet<string> = new Set(['cgroup', 'cgroup2'])

function faultsOf(asked: BundleMount, found: Mount | undefined): readonly string[] {
  const { destination, type, options } = asked
  if (!found) return [`no mount at ${destination}`]
  if (type !== 'bind' && found.type !== type) return [`${found.type} at ${destination}`]
  const flags = FLAGS.filter((flag) => flag === 'ro' || !GROUP_TYPES.has(found.type))
  return flags
    .filter((flag) => options.includes(flag) && !found.flags.has(flag))
    .map((flag) => (flag === 'ro' ? saysWritable(destination) : `${destination} without ${flag}`))
}

/** Runtimes add these by themselves, as their standard says. */
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'console', 'ptmx'].map((name) => `/dev/${name}`)

/** Of a mount that is not in the bundle: what was granted, and what the host has mounted below what is bound. */
function strangerFaults(mount: Mount, { bundle, writableGrants }: AskedFiles): readonly string[] {
  const { mountPoint } = mount
  const isGrant = isWithin(mountPoint, INSIDE.grants)
  const isBelowBind = bundle.mounts.some(
    ({ type, destination }) => type === 'bind' && isWithin(mountPoint, destination),
  )
  if (!isGrant && !isBelowBind) return [`a mount at ${mountPoint} that nobody asked for`]
  const needed = FLAGS.filter((flag) => flag !== 'noexec' && !(flag === 'ro' && writableGrants.includes(mountPoint)))
  return needed
    .filter((flag) => !mount.flags.has(flag))
    .map((flag) => (flag === 'ro' ? saysWritable(mountPoint) : `${mountPoint} without ${flag}`))
}

/** The kernel of gVisor starts in an empty directory; some versions keep a view of their own processes there. */
function sentryFaults({ mountPoint, type }: Mount): readonly string[] {
  return mountPoint === '/' || type === 'proc' ? [] : [`a mount at ${mountPoint} that nobody asked for`]
}

function isReadOnly(mount: Mount | undefined): boolean {
  return mount?.flags.has('ro') ?? false
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`)
}

function saysWritable(path: string): string {
  return `${path} is writable`
}
