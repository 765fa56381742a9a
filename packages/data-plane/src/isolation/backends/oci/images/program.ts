import { AirlockError } from '@airlock/contract'
import { INSIDE, type GuestPrograms } from '@airlock/contract/guest'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, existsSync, readFileSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { requireTool, runTool } from '../run-tool.ts'
import { imagesDir, makeDirectory, makeFile } from './image.ts'

/** What becomes `/opt/airlock` in every sandbox, but for Node, guest and drivers, which are bound over placeholders. */
export interface Program {
  readonly dir: string
  /** How the guest calls programs in an image that may have none. */
  readonly programs: GuestPrograms
}

/** Counts up whenever the code below makes something else of the same files. */
const PROGRAM_VERSION = 1

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
const WRAPPERS = { pip: 'pip.sh', pip3: 'pip.sh', npm: 'npm.sh' } as const

/** Made once for these versions of the host's programs, and never changed: sandboxes that run stand on it. */
export async function makeProgram(stateDir: string, node: string): Promise<Program> {
  const tools = Object.entries(TOOLS).map(([name, of]) => ({ name, path: realpathSync(requireTool(name, of)) }))
  const wrappers = Object.entries(WRAPPERS).map(([name, file]) => ({
    name,
    text: readFileSync(new URL(`./wrappers/${file}`, import.meta.url), 'utf8'),
  }))
  const facts = [...tools.map(({ path }) => path), node].map((path) => [
    path,
    statSync(path).size,
    statSync(path).mtimeMs,
  ])
  const recipe = JSON.stringify([PROGRAM_VERSION, facts, wrappers])
  const dir = join(imagesDir(stateDir), `program-${createHash('sha256').update(recipe).digest('hex').slice(0, 8)}`)
  if (!existsSync(dir)) {
    const fresh = `${dir}.new`
    rmSync(fresh, { recursive: true, force: true })
    makePlaceholders(fresh)
    makeDirectory(join(fresh, 'wrappers'))
    for (const { name, text } of wrappers) makeFile(join(fresh, 'wrappers', name), text, 0o755)
    await makeClosure(join(fresh, 'closure'), tools, node)
    renameSync(fresh, dir)
  }
  return { dir, programs: closurePrograms() }
}

function makePlaceholders(dir: string): void {
  makeDirectory(join(dir, 'bin'))
  makeFile(join(dir, 'bin', 'node'), '')
  makeFile(join(dir, 'guest.cjs'), '')
  makeDirectory(join(dir, 'kernels'))
}

/** Copies of the tools and of every library that they and Node need: an image may have no glibc, or a hostile one. */
async function makeClosure(
  dir: string,
  tools: readonly { readonly name: string; readonly path: string }[],
  node: string,
): Promise<void> {
  for (const name of ['', 'bin', 'lib']) makeDirectory(join(dir, name))
  for (const { name, path } of tools) copy(path, join(dir, 'bin', name))
  const libraries = new Map<string, string>()
  for (const path of [...tools.map((tool) => tool.path), node])
    for (const [name, library] of await librariesOf(path)) libraries.set(name, library)
  for (const [name, path] of libraries) copy(path, join(dir, 'lib', name))
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

function copy(from: string, to: string): void {
  copyFileSync(from, to)
  chmodSync(to, 0o755)
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
