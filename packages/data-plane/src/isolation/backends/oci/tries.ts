import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findGroups } from './groups/find-groups.ts'
import { missingCapabilities, neededCapabilities } from './rights.ts'
import { findTool, runTool } from './run-tool.ts'
import { describeRuntime } from './runtime.ts'
import { UidRanges } from './uid-ranges.ts'

/** What came of trying something: a fact to show, or why it does not work. */
export type Tried = { readonly works: true; readonly detail: string } | { readonly works: false; readonly why: string }

const IDMAP = fileURLToPath(new URL('./idmap.py', import.meta.url))
const ALL_NAMESPACES = ['--user', '--mount', '--pid', '--fork', '--net', '--ipc', '--uts', '--cgroup']
const PRIVATE_MOUNTS = ['--mount', '--propagation', 'private', '/bin/sh', '-euc']

export async function tryCapabilities(): Promise<Tried> {
  const missing = missingCapabilities(await readFile('/proc/self/status', 'utf8'))
  if (missing.length > 0) return { works: false, why: `missing: ${missing.join(', ')}` }
  return { works: true, detail: neededCapabilities().join(', ') }
}

export async function tryNamespaces(): Promise<Tried> {
  return await tryTool('unshare', [...ALL_NAMESPACES, 'true'], 'user, pid, net, ipc, uts, mount, cgroup')
}

export async function tryUidRange(): Promise<Tried> {
  return await inScratch(async (dir) => {
    const ranges = new UidRanges()
    const { first, count } = ranges.claim(dir)
    ranges.release(dir)
    return { works: true, detail: `${count} host uids from ${first} are free` }
  })
}

/** Makes the groups of a sandbox that never is, with limits, and removes them. */
export async function tryGroups(): Promise<Tried> {
  return await inScratch(async (dir) => {
    const groups = findGroups(dir)
    try {
      groups.make('doctor', { limits: { memoryBytes: 2 ** 26, cpus: 1, pids: 16 }, owner: 0 })
    } finally {
      groups.remove('doctor')
    }
    return { works: true, detail: `${groups.kind}: ${groups.limits.join(', ')}, freeze` }
  })
}

export async function tryIdMappedMount(): Promise<Tried> {
  return await inScratch(async (dir) => await tryTool('python3', [IDMAP, dir], 'mount_setattr works'))
}

export async function tryOverlay(): Promise<Tried> {
  const script = `mount -t tmpfs tmpfs "$0"; cd "$0"; mkdir lower upper work merged
    mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged; echo x >merged/x`
  return await inScratch(async (dir) => await tryTool('unshare', [...PRIVATE_MOUNTS, script, dir], 'can be mounted'))
}

export async function tryLoopImage(): Promise<Tried> {
  const script = `cd "$0"; truncate -s 16M image; mkfs.ext4 -q -F -O ^has_journal image; mkdir at
    mount -o loop,nosuid,nodev image at; echo x >at/x`
  return await inScratch(
    async (dir) => await tryTool('unshare', [...PRIVATE_MOUNTS, script, dir], 'ext4 can be mounted'),
  )
}

/** The version and age of a runtime. */
export async function tryRuntime(name: string): Promise<Tried> {
  const path = findTool(name)
  if (path === undefined) return { works: false, why: 'not installed' }
  const known = await describeRuntime(path)
  const { stdout } = await runTool(path, ['--version'])
  const version = known?.version ?? /version (\S+)/u.exec(stdout)?.[1]
  if (version === undefined) return { works: false, why: `${path} does not answer` }
  const { mtime } = await stat(path)
  return { works: true, detail: `${version} of ${mtime.toISOString().slice(0, 7)}, ${path}` }
}

export async function tryVersion(file: string): Promise<Tried> {
  const path = findTool(file)
  if (path === undefined) return { works: false, why: 'not installed' }
  const { exitCode, stdout, stderr } = await runTool(path, ['--version'])
  if (exitCode !== 0) return { works: false, why: lastLine(stderr) }
  return { works: true, detail: `${stdout.trim().replace(/^Python /u, '')}, ${path}` }
}

async function tryTool(name: string, args: readonly string[], detail: string): Promise<Tried> {
  const path = findTool(name)
  if (path === undefined) return { works: false, why: `${name} is not installed` }
  const { exitCode, stderr } = await runTool(path, args)
  return exitCode === 0 ? { works: true, detail } : { works: false, why: lastLine(stderr) }
}

/** A directory that is gone afterwards, and a fault as an answer. */
async function inScratch(work: (dir: string) => Promise<Tried>): Promise<Tried> {
  const dir = await mkdtemp(join(tmpdir(), 'airlock-doctor-'))
  try {
    return await work(dir)
  } catch (error) {
    return { works: false, why: error instanceof Error ? error.message : String(error) }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
