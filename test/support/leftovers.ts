import { execFileSync } from 'node:child_process'
import { rmdirSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  attempt,
  below,
  CLAIMS,
  claimsOf,
  commandLine,
  directories,
  entries,
  loopsOf,
  parentGroupsOf,
  pidsOf,
  readLink,
  readText,
  thaw,
} from './host-state.ts'

const SETTLED_MS = 1_000
const SETTLE_MS = 10_000
/** A busy kernel may take its time to let go of mounts, loop devices and groups. */
const EMPTY_MS = 60_000

/**
 * What sandboxes of this home have on the host, each in words with the sandbox's id: empty when none lives. Waits until
 * it stops changing, for the kernel lets go of some things a moment later.
 */
export async function leftovers(home: string): Promise<readonly string[]> {
  let found = look(home)
  let since = Date.now()
  for (const until = Date.now() + SETTLE_MS; found.length > 0 && Date.now() < until; await delay(50)) {
    const again = look(home)
    if (again.join('\n') !== found.join('\n')) since = Date.now()
    else if (Date.now() - since > SETTLED_MS) break
    found = again
  }
  return found
}

/** The same where nothing may be left: waits longer for the last to go. */
export async function finalLeftovers(home: string): Promise<readonly string[]> {
  let found = look(home)
  for (const until = Date.now() + EMPTY_MS; found.length > 0 && Date.now() < until; found = look(home)) await delay(50)
  return found
}

/** Our own processes on the host that belong to this home. */
export function hostProcesses(home: string): readonly number[] {
  return entries('/proc')
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid && isOurs(readText(`/proc/${pid}/environ`), home))
}

/** Processes inside of one sandbox, by its control groups. */
export function processesOf(home: string, sandbox: string): readonly number[] {
  return pidsOf(sandboxGroups(home).filter((path) => path.endsWith(`/${sandbox}`)))
}

/** Ends and removes everything of this home, by pid and path: the next test must find a clean host. */
export async function sweep(home: string): Promise<void> {
  for (let round = 0; round < 50; round++) {
    const groups = sandboxGroups(home).flatMap((path) => [...below(path), path])
    for (const path of groups) thaw(path)
    const pids = [...hostProcesses(home), ...pidsOf(sandboxGroups(home))]
    for (const pid of pids) attempt(() => process.kill(pid, 'SIGKILL'))
    for (const path of [...groups, ...parentGroups(home)]) attempt(() => rmdirSync(path))
    if (pids.length === 0 && sandboxGroups(home).length === 0) break
    await delay(100)
  }
  for (const { name } of loopsOf(home)) attempt(() => execFileSync('losetup', ['-d', `/dev/${name}`]))
  for (const { name } of claimsOf(home)) attempt(() => unlinkSync(join(CLAIMS, name)))
}

/** Fails when something of this home is left on the host, after having removed it. */
export async function removeHome(home: string, files: 'remove' | 'keep' = 'remove'): Promise<void> {
  const left = [...(await finalLeftovers(home)), ...hostProcesses(home).map((pid) => `host process ${pid}`)]
  if (left.length > 0) await sweep(home)
  if (files === 'remove') rmSync(home, { recursive: true, force: true })
  if (left.length > 0) throw new TypeError(`left behind:\n  ${left.join('\n  ')}`)
}

/** What `leftovers` says, at once. */
export function look(home: string): readonly string[] {
  const groups = sandboxGroups(home)
  const empty = parentGroups(home).filter((parent) => !groups.some((path) => path.startsWith(`${parent}/`)))
  const places = ['data-plane/sandboxes', 'run/sandboxes', 'run/runtime', 'run/doors']
  return [
    ...groups.flatMap((path) => pidsOf([path]).map((pid) => `process ${pid} in ${path}: ${commandLine(pid)}`)),
    ...[...groups, ...empty].map((path) => `cgroup ${path}`),
    ...mountsOf(home),
    ...loopsOf(home).map(({ name, file }) => `${name} on ${file}`),
    ...places.flatMap((place) => entries(join(home, place)).map((name) => `directory ${place}/${name}`)),
    ...claimsOf(home).map(({ name, holder }) => `uid range ${name} of ${holder}`),
  ]
}

function isOurs(environ: string, home: string): boolean {
  return environ
    .split('\0')
    .some(
      (text) => text === `AIRLOCK_HOME=${home}` || (text.startsWith('AIRLOCK_PROCESS=') && text.includes(`"${home}/`)),
    )
}

/** One for each sandbox and hierarchy. */
function sandboxGroups(home: string): readonly string[] {
  return parentGroups(home).flatMap((parent) => directories(parent).map((name) => join(parent, name)))
}

function parentGroups(home: string): readonly string[] {
  return parentGroupsOf(join(home, 'data-plane'))
}

/** Every mount namespace once, for a mount may live on in the private one of a process that should be gone. */
function mountsOf(home: string): readonly string[] {
  const seen = new Set<string>()
  return entries('/proc').flatMap((pid) => {
    const namespace = readLink(`/proc/${pid}/ns/mnt`)
    if (namespace === undefined || seen.has(namespace)) return []
    seen.add(namespace)
    const lines = readText(`/proc/${pid}/mountinfo`)
      .split('\n')
      .filter((line) => line.includes(`${home}/`))
    // Shared parts of a sandbox's root do not name it; its other mounts do.
    const owner = /sbx_\w{26}/.exec(lines.join('\n'))?.[0] ?? 'nobody'
    return lines.map((line) => `mount in ${namespace} of ${owner}: ${line}`)
  })
}
