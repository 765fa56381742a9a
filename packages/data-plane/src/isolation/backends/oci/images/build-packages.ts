import { AirlockError, BOUNDS } from '@airlock/contract'
import { createHash } from 'node:crypto'
import { chownSync, existsSync, lstatSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { findTool, runTool } from '../run-tool.ts'
import { readAlternatives } from './alternatives.ts'
import { Apt, type OnProgress, type Resolved } from './apt.ts'
import { BUILDER_UID, CONFINED, runConfined, type ConfinedResult, type ConfinedRun } from './confined.ts'
import type { InstalledPackages } from './installed.ts'
import { makeDirectory } from './image.ts'
import type { Manifest } from './manifest.ts'

export interface PackageBuild {
  readonly packages: readonly string[]
  /** A new directory, ours alone; the image is `root` in it when this is done. */
  readonly dir: string
  /** What confines the programs of the build. */
  readonly script: string
  /** Where apt keeps its lists from one build to the next. */
  readonly aptDir: string
  readonly installed: InstalledPackages
  /** What it may take of the disk of the host. */
  readonly roomBytes: number
  readonly onProgress: OnProgress
}

const UNPACK_MS = 15 * 60_000
const PREPARE_MS = 15 * 60_000
/** How much a package grows when it is unpacked, at most, for the check of free space. */
const GROWTH = 8
const TOOLS = ['apt-get', 'dpkg-deb', 'update-alternatives', 'ldconfig'] as const

/**
 * Makes an image of Debian packages in a directory of its own. No package is installed: nothing is written to the host,
 * its package database is only read, and no maintainer script runs. What such scripts would have done for programs to
 * work (alternatives, byte code, the cache of libraries) is done here instead.
 */
export async function buildPackages(build: PackageBuild): Promise<Omit<Manifest, 'builtAt'>> {
  throwUnlessDebian(build.installed)
  for (const name of ['root', 'debs', 'debs/partial']) makeOwned(join(build.dir, name))
  for (const name of ['', 'lists', 'lists/partial', 'cache', 'state', 'log']) makeOwned(join(build.aptDir, name))
  const most = Math.min(BOUNDS.imageBytes, build.roomBytes / GROWTH)
  const resolved = await new Apt(dirsOf(build), build.onProgress).fetch(build.packages, Math.floor(most))
  await unpack(build, resolved)
  await prepare(build, resolved)
  rmSync(join(build.dir, 'debs'), { recursive: true })
  const bytes = await sizeOf(join(build.dir, 'root'))
  if (bytes > BOUNDS.imageBytes) throw failed(`The image is larger than ${BOUNDS.imageBytes} bytes.`)
  const base = baseOf(resolved, build.installed)
  const recipe = JSON.stringify([resolved.missing, Object.keys(base).toSorted(), Object.values(base).toSorted()])
  const name = `packages-${createHash('sha256').update(recipe).digest('hex').slice(0, 16)}`
  return { name, source: 'packages', packages: [...build.packages], bytes, base }
}

/** Whether what the image stood on when it was built is what the host has now. */
export function isFresh(base: Manifest['base'], installed: InstalledPackages): boolean {
  const versions = installed.versions()
  const { machine, ...packages } = base
  if (machine !== machineOf()) return false
  return Object.entries(packages).every(([name, version]) => versions?.get(name) === version)
}

/** The size of a tree, as it is on disk. */
export async function sizeOf(dir: string): Promise<number> {
  const { stdout } = await runTool('du', ['-s', '--block-size=1', dir], 120_000)
  const bytes = Number.parseInt(stdout, 10)
  if (!Number.isSafeInteger(bytes)) throw failed('The size of the image could not be read.')
  return bytes
}

function throwUnlessDebian(installed: InstalledPackages): void {
  const missing = TOOLS.filter((name) => findTool(name) === undefined)
  const why =
    installed.versions() === undefined || missing.length > 0
      ? 'Templates of packages need Debian or Ubuntu on the host: this one has no apt and dpkg.'
      : lstatSync('/lib').isSymbolicLink()
        ? undefined
        : 'Templates of packages need a host whose /lib is in /usr.'
  if (why !== undefined) throw new AirlockError('template_failed', why, { hint: 'Import an image instead.' })
}

async function unpack(build: PackageBuild, { missing }: Resolved): Promise<void> {
  let done = 0
  const step = (detail: string) => build.onProgress({ step: 'unpack', done, total: missing.length, detail })
  step('')
  const onLine = (line: string) => {
    done++
    step(line)
  }
  const script = `set -e
    for name in bin sbin lib lib32 lib64 libx32; do
      if [ -L "/$name" ]; then ln -s "usr/$name" "root/$name"; mkdir -p "root/usr/$name"; fi
    done
    mkdir -p root/etc/alternatives root/etc/ld.so.conf.d root/var/lib/dpkg/alternatives
    for deb in debs/*.deb; do
      [ -e "$deb" ] || continue
      dpkg-deb -x "$deb" root
      echo "\${deb##*/}"
    done
    find root -perm /6000 ! -type l -exec chmod a-s {} +
    find root -type d ! -perm -755 -exec chmod 755 {} +`
  must(await run(build, { argv: ['/bin/sh', '-c', script], timeoutMs: UNPACK_MS, onLine }), 'unpack the packages')
}

async function prepare(build: PackageBuild, { missing }: Resolved): Promise<void> {
  const steps: readonly (readonly [string, () => Promise<void>])[] = [
    ['alternatives', () => installAlternatives(build)],
    ['byte code', () => compilePython(build, missing)],
    ['libraries', () => cacheLibraries(build)],
  ]
  for (const [done, [detail, work]] of steps.entries()) {
    build.onProgress({ step: 'prepare', done, total: steps.length, detail })
    await work()
  }
}

async function installAlternatives(build: PackageBuild): Promise<void> {
  const scripts: string[] = []
  const show = 'for deb in debs/*.deb; do dpkg-deb -I "$deb" postinst 2>/dev/null || true; echo; done'
  const read = { argv: ['/bin/sh', '-c', show], timeoutMs: PREPARE_MS, onLine: (line: string) => scripts.push(line) }
  must(await run(build, read), 'read the packages')
  for (const words of readAlternatives(scripts.join('\n'))) {
    const quiet = ['--quiet', '--log', '/dev/null', '--root', `${CONFINED.build}/root`]
    // One that does not fit is left out: its program has a name of its own.
    await run(build, { argv: ['update-alternatives', ...quiet, ...words], timeoutMs: PREPARE_MS })
  }
}

/** With the paths that the files will have inside. Code that does not compile is the package's matter. */
async function compilePython(build: PackageBuild, missing: readonly string[]): Promise<void> {
  const places = ['usr/lib/python3', 'usr/share'].filter((place) => existsSync(join(build.dir, 'root', place)))
  const merged = missing.some((name) => /^python3(?:\.\d+)?(?:-minimal)?=/u.test(name))
  if (places.length === 0 || (!merged && !existsSync('/usr/bin/python3'))) return
  const how = ['-q', '-q', '-j', '2', '-s', `${CONFINED.build}/root`, '-p', '/', '-x', '/tests?/']
  const argv = ['/usr/bin/python3', '-m', 'compileall', ...how, ...places.map((place) => `root/${place}`)]
  await run(build, { argv, merged, timeoutMs: PREPARE_MS })
}

async function cacheLibraries(build: PackageBuild): Promise<void> {
  const script = `set -e
    { cat /etc/ld.so.conf || true; echo "include ${CONFINED.build}/root/etc/ld.so.conf.d/*.conf"; } >root/etc/ld.so.conf.new
    "$(command -v ldconfig || echo /sbin/ldconfig)" -i -X -C root/etc/ld.so.cache -f root/etc/ld.so.conf.new
    rm root/etc/ld.so.conf.new
    rm -r root/var/lib/dpkg/alternatives
    chmod 644 root/etc/ld.so.cache`
  const argv = ['/bin/sh', '-c', script]
  must(await run(build, { argv, merged: true, timeoutMs: PREPARE_MS }), 'list the libraries')
}

/** The packages of the host that these depend on, and the machine. */
function baseOf({ closure, missing }: Resolved, installed: InstalledPackages): Manifest['base'] {
  const versions = installed.versions() ?? new Map<string, string>()
  const fetched = new Set(missing.map((name) => name.split('=')[0]))
  const ofHost = [...closure, 'python3', 'libc6'].filter((name) => !fetched.has(name) && versions.has(name))
  return { ...Object.fromEntries(ofHost.map((name) => [name, versions.get(name) ?? ''])), machine: machineOf() }
}

function machineOf(): string {
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : ''
  const fields = ['ID', 'VERSION_ID'].map((name) => new RegExp(`^${name}=(.*)$`, 'mu').exec(release)?.[1] ?? '')
  return [process.arch, ...fields].join(' ')
}

function dirsOf({ script, dir, aptDir }: PackageBuild): Pick<ConfinedRun, 'script' | 'build' | 'apt'> {
  return { script, build: dir, apt: aptDir }
}

async function run(build: PackageBuild, how: Omit<ConfinedRun, 'script' | 'build' | 'apt'>): Promise<ConfinedResult> {
  return runConfined({ ...dirsOf(build), ...how })
}

function must({ exitCode, said }: ConfinedResult, what: string): void {
  if (exitCode !== 0) throw failed(`Could not ${what}: ${said.at(-1) ?? `exit code ${exitCode ?? 'unknown'}`}`)
}

function makeOwned(path: string): void {
  makeDirectory(path)
  chownSync(path, BUILDER_UID, BUILDER_UID)
}

function failed(message: string): AirlockError {
  return new AirlockError('template_failed', message)
}
