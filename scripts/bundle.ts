import { isBuiltin } from 'node:module'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions, type Metafile, type OutputFile, type Plugin } from 'esbuild'
import { replaceFile } from './replace-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** What is started, each from its `src/main.ts`, and what becomes of its `import()`s. */
const PROGRAMS = {
  recorder: 'one file',
  keys: 'one file',
  'data-plane': 'one file',
  doors: 'one file',
  'control-plane': 'one file',
  cli: 'a file for each verb',
} as const

/** Libraries in CommonJS ask for modules of Node. There is nothing else that they could get. */
const REQUIRE = 'const require = (name) => process.getBuiltinModule(name);'

/** Writes `dist/<program>/main.js`, which is what starts: Node reads one file much faster than hundreds. */
export async function bundlePrograms(): Promise<void> {
  await Promise.all(
    Object.entries(PROGRAMS).map(async ([name, files]) => {
      const outdir = join(ROOT, 'dist', name)
      const { outputFiles, metafile } = await build({
        ...OPTIONS,
        ...optionsOf(name, outdir),
        splitting: files !== 'one file',
      })
      refuseImports(metafile)
      replaceFiles(outdir, outputFiles)
    }),
  )
}

const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  banner: { js: REQUIRE },
  // For who asks Node for them; nobody reads them at a start.
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'warning',
  metafile: true,
  write: false,
} as const satisfies BuildOptions

/** A thread of the doors, which is started from its text. */
const DOORS_THREAD = { prepare: 'packages/doors/src/llm/calls/prepare-main.ts' }

function optionsOf(name: string, outdir: string) {
  const entryPoints = { main: `packages/${name}/src/main.ts`, ...(name === 'doors' ? DOORS_THREAD : {}) }
  return { entryPoints, outdir, plugins: [sourceUrls(outdir)] }
}

/** In the bundle too, `import.meta.url` is the URL of the source: what a file reads beside itself is found from there. */
function sourceUrls(outdir: string): Plugin {
  return {
    name: 'source-urls',
    setup: (building) => {
      building.onLoad({ filter: /\/packages\/[^/]+\/src\/.*\.ts$/ }, ({ path }) => {
        const url = `new URL(${JSON.stringify(relative(outdir, path))}, import.meta.url).href`
        const contents = readFileSync(path, 'utf8').replaceAll(/\bimport\.meta\.url\b/gu, url)
        return { contents, loader: 'ts' }
      })
    },
  }
}

/** `pg` has it for who asks for it by name. */
const NOT_USED = 'pg-native'

/** Fails closed: a process that gave up its rights can load nothing any more, so what is not in its file is not there. */
function refuseImports({ outputs }: Metafile): void {
  const outside = Object.values(outputs)
    .flatMap(({ imports }) => imports.filter(({ external }) => external === true))
    .map(({ path }) => path)
    .filter((path) => !isBuiltin(path) && path !== NOT_USED)
  if (outside.length > 0) throw new TypeError(`not in the bundle: ${[...new Set(outside)].join(', ')}`)
}

function replaceFiles(outdir: string, files: readonly OutputFile[]): void {
  mkdirSync(outdir, { recursive: true })
  const isMain = ({ path }: OutputFile) => basename(path) === 'main.js'
  // The main file names the others by their content: they are there before it does, and until it no longer does.
  for (const file of files.filter((one) => !isMain(one))) replaceFile(file.path, file.contents)
  for (const file of files.filter(isMain)) replaceFile(file.path, file.contents)
  const names = new Set(files.map(({ path }) => basename(path)))
  // Hidden ones are of another build, which is at work.
  const old = readdirSync(outdir).filter((name) => !names.has(name) && !name.startsWith('.'))
  for (const name of old) rmSync(join(outdir, name), { force: true })
}
