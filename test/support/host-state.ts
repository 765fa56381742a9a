import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Claims of uid ranges, as the product makes them. */
export const CLAIMS = '/run/airlock-uid-ranges'

/** Where control groups of this process may be: every hierarchy, and on version 2 its own group as well. */
export function groupRoots(): readonly string[] {
  const mounts = readText('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
  const points = new Set(mounts.map((line) => line.split(' ')[4] ?? ''))
  const own = /^0::(.*)$/m.exec(readText('/proc/self/cgroup'))?.[1] ?? '/'
  return [...new Set([...points].flatMap((point) => [point, join(point, own)]))]
}

/** The group above those of a data plane's sandboxes, in each hierarchy that has it. */
export function parentGroupsOf(stateDir: string): readonly string[] {
  const hash = createHash('sha256').update(stateDir).digest('hex').slice(0, 8)
  return groupRoots()
    .map((root) => join(root, `airlock-${hash}`))
    .filter((path) => isDirectory(path))
}

export function below(path: string): readonly string[] {
  return directories(path).flatMap((name) => [...below(join(path, name)), join(path, name)])
}

export function pidsOf(groups: readonly string[]): readonly number[] {
  const files = groups.flatMap((path) => [path, ...below(path)]).map((path) => join(path, 'cgroup.procs'))
  const pids = files.flatMap((file) => readText(file).split('\n')).map(Number)
  return [...new Set(pids)].filter((pid) => pid > 1)
}

/** A frozen process cannot die. */
export function thaw(group: string): void {
  attempt(() => writeFileSync(join(group, 'freezer.state'), 'THAWED', { flag: 'r+' }))
  attempt(() => writeFileSync(join(group, 'cgroup.freeze'), '0', { flag: 'r+' }))
}

/** Loop devices whose file is below a directory. */
export function loopsOf(directory: string): readonly { readonly name: string; readonly file: string }[] {
  return entries('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .map((name) => ({ name, file: readText(`/sys/block/${name}/loop/backing_file`).trim() }))
    .filter(({ file }) => file.startsWith(`${directory}/`))
}

/** Claims whose holder is below a directory. */
export function claimsOf(directory: string): readonly { readonly name: string; readonly holder: string }[] {
  return entries(CLAIMS)
    .map((name) => ({ name, holder: readLink(join(CLAIMS, name)) ?? '' }))
    .filter(({ holder }) => holder.startsWith(`${directory}/`))
}

export function commandLine(pid: number): string {
  return readText(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
}

/** We are root: what cannot be read, listed or removed is gone, or busy for this round. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

export const readText = (path: string): string => attempt(() => readFileSync(path, 'utf8')) ?? ''
export const readLink = (path: string): string | undefined => attempt(() => readlinkSync(path))
export const entries = (path: string): readonly string[] => attempt(() => readdirSync(path)) ?? []
const isDirectory = (path: string): boolean => attempt(() => readdirSync(path)) !== undefined
export const directories = (path: string): readonly string[] =>
  (attempt(() => readdirSync(path, { withFileTypes: true })) ?? [])
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
