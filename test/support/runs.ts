import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmdirSync,
  rmSync,
  statfsSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import {
  attempt,
  below,
  CLAIMS,
  claimsOf,
  commandLine,
  directories,
  entries,
  groupRoots,
  loopsOf,
  parentGroupsOf,
  pidsOf,
  readLink,
  readText,
  thaw,
} from './host-state.ts'

/** Short, because socket paths are. */
const BASE = '/tmp'
const MEMORY = '/dev/shm'
const MEMORY_BYTES = 4 * 1024 ** 3
const NAME = /^at-\w{6}$/
const MARKER = '.run.json'
const ROUNDS = 100
const ROUND_MS = 100
/** Depth of a data plane's state directory below that of the run. */
const STATE_DEPTH = 3

interface ProcessId {
  readonly pid: number
  readonly startTime: string
}

/** Written to the directory of a run, so that a later run can tell whether this one was broken off. */
interface Marker {
  /** Outermost first: `.ci/run`, the program behind `npm test`, Vitest. The run ends when one of them does. */
  readonly owners: readonly ProcessId[]
  readonly pidNamespace: string
}

/**
 * Makes a directory for everything that a run puts on the host. Its name marks processes (`TEST_RUN`) and control groups
 * (`airlock-test-<name>…`) of the run. `owners`: pids of the programs that started it.
 */
export function createRun(owners: readonly number[]): string {
  const directory = mkdtempSync(join(BASE, 'at-'))
  chmodSync(directory, 0o1777)
  const marker: Marker = {
    owners: [...owners, process.pid].map((pid) => ({ pid, startTime: startTimeOf(pid) ?? '' })),
    pidNamespace: pidNamespace(),
  }
  writeFileSync(join(directory, MARKER), JSON.stringify(marker))
  return directory
}

/** A directory of the run in memory. The run's own directory if the machine has too little room for it. */
export function memoryOf(directory: string): string {
  const memory = join(MEMORY, basename(directory))
  const found = attempt(() => statfsSync(MEMORY))
  if (!found || found.bavail * found.bsize < MEMORY_BYTES) return directory
  mkdirSync(memory)
  chmodSync(memory, 0o1777)
  return memory
}

/** Ends what runs left that were killed, and says what that was. Runs of other users and other pid namespaces stay. */
export function endBrokenOffRuns(): readonly string[] {
  return entries(BASE)
    .filter((name) => NAME.test(name))
    .map((name) => join(BASE, name))
    .flatMap((directory) => {
      const marker = readMarker(directory)
      if (marker?.pidNamespace !== pidNamespace()) return []
      const dead = marker.owners.findIndex(({ pid, startTime }) => startTimeOf(pid) !== startTime)
      if (dead < 0) return []
      return endRun(directory, marker.owners.slice(dead + 1)).map((found) => `${basename(directory)}: ${found}`)
    })
}

/** Ends and removes everything of a run, and says what it found beside files. */
export function endRun(directory: string, owners: readonly ProcessId[] = []): readonly string[] {
  const found = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    const things = findThings(directory, owners)
    for (const { name } of things) found.add(name)
    for (const { end } of things) attempt(end)
    if (things.length === 0) break
    sleep(ROUND_MS)
  }
  if (mountsBelow(directory).length === 0) rmSync(directory, { recursive: true, force: true })
  rmSync(join(MEMORY, basename(directory)), { recursive: true, force: true })
  return [...found]
}

interface Thing {
  readonly name: string
  readonly end: () => void
}

/** In the order in which they can be ended. */
function findThings(directory: string, owners: readonly ProcessId[]): readonly Thing[] {
  const groups = groupsOf(directory)
  return [
    ...processesOf(directory, owners, groups).map((pid) => ({
      name: `process ${pid}: ${commandLine(pid).slice(0, 200)}`,
      end: () => process.kill(pid, 'SIGKILL'),
    })),
    ...groups.map((path) => ({
      name: `control group ${path}`,
      end: () => {
        thaw(path)
        rmdirSync(path)
      },
    })),
    ...mountsBelow(directory).map((path) => ({
      name: `mount ${path}`,
      end: () => execFileSync('umount', ['--lazy', path], { stdio: 'ignore' }),
    })),
    ...loopsOf(directory).map(({ name, file }) => ({
      name: `loop device ${name} on ${file}`,
      end: () => execFileSync('losetup', ['-d', `/dev/${name}`], { stdio: 'ignore' }),
    })),
    ...claimsOf(directory).map(({ name, holder }) => ({
      name: `uid range ${name} of ${holder}`,
      end: () => unlinkSync(join(CLAIMS, name)),
    })),
  ]
}

/** Processes that are marked, their descendants, and those in control groups of the run. */
function processesOf(directory: string, owners: readonly ProcessId[], groups: readonly string[]): readonly number[] {
  const pids = entries('/proc')
    .map(Number)
    .filter((pid) => pid > 1)
  const isOwner = (pid: number) => owners.some((owner) => owner.pid === pid && owner.startTime === startTimeOf(pid))
  const found = new Set([...pids.filter((pid) => isOwner(pid) || isMarked(pid, directory)), ...pidsOf(groups)])
  const parents = new Map(pids.map((pid) => [pid, parentOf(pid)]))
  // A set may grow while it is read.
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.add(child)
  // A zombie has ended.
  return [...found].filter((pid) => pid !== process.pid && startTimeOf(pid) !== undefined)
}

function isMarked(pid: number, directory: string): boolean {
  const marks = [
    `TEST_RUN=${basename(directory)}`,
    `AIRLOCK_HOME=${directory}/`,
    `AIRLOCK_TEST_MARK=${basename(directory)}-`,
  ]
  return readText(`/proc/${pid}/environ`)
    .split('\0')
    .some(
      (text) =>
        text === marks[0] ||
        marks.slice(1).some((mark) => text.startsWith(mark)) ||
        (text.startsWith('AIRLOCK_PROCESS=') && text.includes(`"${directory}/`)),
    )
}

/** Deepest first. */
function groupsOf(directory: string): readonly string[] {
  const named = groupRoots().flatMap((root) =>
    directories(root)
      .filter((name) => name.startsWith(`airlock-test-${basename(directory)}`))
      .map((name) => join(root, name)),
  )
  const owned = directoriesBelow(directory, STATE_DEPTH).flatMap((path) => parentGroupsOf(path))
  return [...named, ...owned].flatMap((path) => [...below(path), path])
}

function directoriesBelow(directory: string, depth: number): readonly string[] {
  if (depth === 0) return []
  return directories(directory)
    .map((name) => join(directory, name))
    .flatMap((path) => [path, ...directoriesBelow(path, depth - 1)])
}

/** Deepest first. */
function mountsBelow(directory: string): readonly string[] {
  return readText('/proc/self/mountinfo')
    .split('\n')
    .map(
      (line) =>
        line
          .split(' ')[4]
          ?.replaceAll(/\\(\d{3})/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 8))) ?? '',
    )
    .filter((point) => point.startsWith(`${directory}/`))
    .toReversed()
}

function readMarker(directory: string): Marker | undefined {
  const found = attempt(() => lstatSync(directory))
  if (!found?.isDirectory() || found.uid !== process.getuid?.()) return undefined
  return attempt(() => JSON.parse(readText(join(directory, MARKER))) as Marker)
}

/** Undefined for a process that has ended. With the pid it names a process for ever. */
function startTimeOf(pid: number): string | undefined {
  const fields = statOf(pid)
  return fields[0] === 'Z' ? undefined : fields[19]
}

function parentOf(pid: number): number {
  return Number(statOf(pid)[1])
}

/** From the state on: the name before it may hold anything. */
function statOf(pid: number): readonly string[] {
  const text = readText(`/proc/${pid}/stat`)
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function pidNamespace(): string {
  return readLink('/proc/self/ns/pid') ?? ''
}

/** Blocks: an exit handler cannot wait otherwise. */
export function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
