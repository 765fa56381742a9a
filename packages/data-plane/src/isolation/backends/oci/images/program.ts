import { AirlockError } from '@airlock/contract'
import { INSIDE, type GuestPrograms } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeProbeProgram } from '../../../probe/probe-program.ts'
import { requireTool, runTool } from '../run-tool.ts'
import { imagesDir, makeDirectory, makeFile } from './image.ts'
import { syncTree } from './sync-tree.ts'
import { copyProgram, linkProgram } from './take-files.ts'
import { damagedFiles, sealTree, takeFrom } from './whole-tree.ts'

/** What sandboxes are started from. Nothing of it is in the directory that the server was installed to. */
export interface Program {
  /** A name for all that is in it. */
  readonly name: string
  /** What becomes `/opt/airlock` in every sandbox. */
  readonly dir: string
  /** How the guest calls programs in an image that may have none. */
  readonly programs: GuestPrograms
  /** What is called on the host. */
  readonly tools: Tools
}

export interface Tools {
  readonly node: string
  readonly launch: string
  readonly grants: string
  readonly extents: string
  readonly confined: string
  readonly repository: string
  readonly placeWorktree: string
  readonly scanWorktree: string
  readonly unpacker: string
}

/** Where it is taken from. */
export interface ProgramSources {
  readonly node: string
  readonly guest: string
  /** The drivers of interpreters. A guest without any has no sessions, and is a guest all the same. */
  readonly kernels: string
}

/** Counts up whenever the code below makes something else of the same files. */
const PROGRAM_VERSION = 4

/** Programs of the host that the guest needs, and the Debian packages they are in. */
const TOOLS = {
  sh: 'dash',
  setpriv: 'util-linux',
  env: 'coreutils',
  mkfifo: 'coreutils',
  mv: 'coreutils',
  rm: 'coreutils',
}
const LOADER = 'ld.so'
/** By the directory that each is in; `wrappers/find.sh` names these directories. */
const WRAPPERS = {
  'wrappers/pip': 'pip.sh',
  'wrappers/pip3': 'pip.sh',
  'wrappers/npm': 'npm.sh',
  'wrappers/npx': 'npx.sh',
  'wrappers/apt': 'apt.sh',
  'wrappers/apt-get': 'apt.sh',
  'wrappers/airlock-tool': 'airlock-tool.sh',
  'python/python': 'python.sh',
  'python/python3': 'python.sh',
  'fallback/python': 'python.sh',
  'find.sh': 'find.sh',
} as const

/** Scripts of ours that run on the host; the launcher looks for that of grants beside itself. */
const SCRIPTS = {
  launch: 'launch.sh',
  grants: 'grants/grants.py',
  extents: 'extents.py',
  confined: 'images/confined.sh',
  confine: 'worktrees/confine.py',
  repository: 'worktrees/repository.py',
  placeWorktree: 'worktrees/place.py',
  scanWorktree: 'worktrees/scan.py',
} as const
const UNPACKER = 'unpack.mjs'

/** What lies in one directory each, and is bound or called from there. */
const [INSIDE_DIR, TOOLS_DIR] = ['inside', 'tools'] as const

export function programsDir(stateDir: string): string {
  return join(stateDir, 'programs')
}

/**
 * Takes all that sandboxes are started from into the state directory, named after what is in it, and never changed: sandboxes
 * that run stand on it, and an upgrade in place may replace every file of the installation while we run. Files that are whole
 * already are not taken again; damaged ones are replaced one by one.
 */
export async function makeProgram(stateDir: string, sources: ProgramSources, log: Pick<Log, 'warn'>): Promise<Program> {
  const tools = Object.entries(TOOLS).map(([name, of]) => ({ name, path: realpathSync(requireTool(name, of)) }))
  const files = [...insideFiles(sources), ...toolFiles()]
  const name = nameOf([...tools.map(({ path }) => path), sources.node], files)
  const dir = join(programsDir(stateDir), name)
  const fresh = `${dir}.new`
  const make = async () => makeTree(fresh, { tools, files, node: sources.node })
  if (!existsSync(dir)) {
    await make()
    renameSync(fresh, dir)
    syncTree(programsDir(stateDir), 'itself')
  } else {
    const damaged = damagedFiles(dir)
    if (damaged === 'unknown' || damaged.length > 0) {
      log.warn('replacing damaged files that sandboxes are started from', { dir, files: damaged })
      await make()
      takeFrom(fresh, dir, damaged)
      syncTree(dir)
      rmSync(fresh, { recursive: true })
    }
  }
  return { name, dir: join(dir, INSIDE_DIR), programs: closurePrograms(), tools: toolsIn(dir) }
}

interface Taken {
  readonly tools: readonly { readonly name: string; readonly path: string }[]
  readonly files: readonly TakenFile[]
  readonly node: string
}

/** Whole and synced when it resolves. */
async function makeTree(dir: string, { tools, files, node }: Taken): Promise<void> {
  rmSync(dir, { recursive: true, force: true })
  for (const path of ['', INSIDE_DIR, TOOLS_DIR]) makeDirectory(join(dir, path))
  for (const file of files) {
    makeDirectory(dirname(join(dir, file.path)))
    makeFile(join(dir, file.path), file.content, file.mode)
  }
  linkProgram(node, join(dir, INSIDE_DIR, 'bin', 'node'))
  await makeClosure(join(dir, INSIDE_DIR, 'closure'), tools, node)
  sealTree(dir)
  syncTree(dir)
}

/** Removes those that are not `current` and that no sandbox was started from, by the mounts that each launcher was told. */
export function removeOldPrograms(stateDir: string, current: Program, sandboxes: string): void {
  const fstabs = readdirSync(sandboxes)
    .map((id) => join(sandboxes, id, 'launch', 'fstab'))
    // One that has none was not launched.
    .flatMap((path) => (existsSync(path) ? [readText(path)] : []))
  const images = readdirSync(imagesDir(stateDir)).filter((name) => BEFORE.test(name))
  const all = [
    ...images.map((name) => join(imagesDir(stateDir), name)),
    ...readdirSync(programsDir(stateDir)).map((name) => join(programsDir(stateDir), name)),
  ]
  const isUsed = (dir: string) => fstabs.some((text) => text.includes(`/${basename(dir)}`))
  // A damaged list names none of them: it may be of any, so nothing is removed until its sandbox has ended.
  if (fstabs.some((text) => !all.some((dir) => text.includes(`/${basename(dir)}`)))) return
  for (const dir of all)
    if (basename(dir) !== current.name && !isUsed(dir)) rmSync(dir, { recursive: true, force: true })
}

/** Empty when it cannot be read. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The caller takes it for damaged.
    return ''
  }
}

/** Where versions before this one kept theirs. */
const BEFORE = /^program-[0-9a-f]{8}$/u

interface TakenFile {
  readonly path: string
  readonly content: Buffer
  readonly mode: number
}

function insideFiles({ guest, kernels }: ProgramSources): readonly TakenFile[] {
  const tool = join(dirname(guest), 'airlock-tool.cjs')
  const drivers = existsSync(kernels) ? readdirSync(kernels) : []
  const wrappers = Object.entries(WRAPPERS).map(([name, file]) => ({ name, from: ours(`images/wrappers/${file}`) }))
  return [
    { path: `${INSIDE_DIR}/guest.cjs`, content: readFileSync(guest), mode: 0o644 },
    // A guest that was built alone has no tools, and is a guest all the same.
    ...(existsSync(tool) ? [taken(`${INSIDE_DIR}/airlock-tool.cjs`, tool, 0o644)] : []),
    { path: `${INSIDE_DIR}/probe`, content: makeProbeProgram(), mode: 0o755 },
    ...drivers.map((name) => taken(`${INSIDE_DIR}/kernels/${name}`, join(kernels, name), 0o644)),
    ...wrappers.map(({ name, from }) => taken(`${INSIDE_DIR}/${name}`, from, 0o755)),
  ]
}

function toolFiles(): readonly TakenFile[] {
  const built = fileURLToPath(import.meta.resolve('@airlock/data-plane/unpacker'))
  return [
    ...Object.values(SCRIPTS).map((path) => taken(`${TOOLS_DIR}/${path}`, ours(path), 0o755)),
    // Where it is not built images cannot be imported, and all else works.
    ...(existsSync(built) ? [taken(`${TOOLS_DIR}/${UNPACKER}`, built, 0o644)] : []),
  ]
}

function taken(path: string, from: string, mode: number): TakenFile {
  return { path, content: readFileSync(from), mode }
}

function ours(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url))
}

/** Large programs by what the file system says of them, for reading them all at every start would cost a second; ours by content. */
function nameOf(programs: readonly string[], files: readonly TakenFile[]): string {
  const facts = programs.map((path) => {
    // Not by `ctime`, which a second name changes.
    const { size, ino, mtimeNs } = statSync(path, { bigint: true })
    return [path, size, ino, mtimeNs].map(String)
  })
  const hash = createHash('sha256').update(JSON.stringify([PROGRAM_VERSION, facts]))
  for (const { path, content } of files) hash.update(`${path} ${content.length}\n`).update(content)
  return hash.digest('hex').slice(0, 16)
}

function toolsIn(dir: string): Tools {
  const at = (path: string) => join(dir, TOOLS_DIR, path)
  const { launch, grants, extents, confined, repository, placeWorktree, scanWorktree } = SCRIPTS
  return {
    node: join(dir, INSIDE_DIR, 'bin', 'node'),
    launch: at(launch),
    grants: at(grants),
    extents: at(extents),
    confined: at(confined),
    repository: at(repository),
    placeWorktree: at(placeWorktree),
    scanWorktree: at(scanWorktree),
    unpacker: at(UNPACKER),
  }
}

/** Copies of the tools and of every library that they and Node need: an image may have no glibc, or a hostile one. */
async function makeClosure(
  dir: string,
  tools: readonly { readonly name: string; readonly path: string }[],
  node: string,
): Promise<void> {
  for (const name of ['', 'bin', 'lib']) makeDirectory(join(dir, name))
  for (const { name, path } of tools) copyProgram(path, join(dir, 'bin', name))
  const libraries = new Map<string, string>()
  for (const path of [...tools.map((tool) => tool.path), node])
    for (const [name, library] of await librariesOf(path)) libraries.set(name, library)
  for (const [name, path] of libraries) copyProgram(path, join(dir, 'lib', name))
}

/** By the name under which it is looked up. The loader itself is named by its path alone. */
async function librariesOf(path: string): Promise<readonly (readonly [string, string])[]> {
  const { exitCode, stdout, stderr } = await runTool(requireTool('ldd', 'libc-bin'), [path])
  // What is linked statically needs nothing.
  if (exitCode !== 0 && /not a dynamic executable|statically linked/u.test(stdout + stderr)) return []
  if (exitCode !== 0) throw new AirlockError('isolation_unavailable', `The libraries of ${path} were not found.`)
  return stdout.split('\n').flatMap((line) => {
    const [, library] = /^\s*\S+ => (\/\S+) \(/u.exec(line) ?? []
    const [, loader] = /^\s*(\/\S+) \(/u.exec(line) ?? []
    if (loader !== undefined) return [[LOADER, realpathSync(loader)] as const]
    return library === undefined ? [] : [[basename(library), realpathSync(library)] as const]
  })
}

function closurePrograms(): GuestPrograms {
  const lib = `${INSIDE.closure}/lib`
  const loaded = (path: string) => [`${lib}/${LOADER}`, '--inhibit-cache', '--library-path', lib, path]
  const tool = (name: string) => loaded(`${INSIDE.closure}/bin/${name}`)
  return {
    sh: tool('sh'),
    setpriv: tool('setpriv'),
    env: tool('env'),
    mkfifo: tool('mkfifo'),
    mv: tool('mv'),
    rm: tool('rm'),
    // The configuration of an image could name a library to load.
    node: [...loaded(INSIDE.node), '--openssl-config=/dev/null'],
  }
}
