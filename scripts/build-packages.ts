import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions, type Metafile } from 'esbuild'
import { cliDeclarations, sdkDeclarations, type Declarations } from './package-declarations.ts'

// What users install: `packages/{sdk,cli}/dist` become packages of their own, JavaScript with declarations and without
// dependencies, to be packed with `npm pack ./packages/sdk/dist`. Inside of the repository nobody uses these.

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
  metafile: true,
} as const satisfies BuildOptions

await buildSdk()
await buildCli()

/** As ES module and as CommonJS, for there are projects of both kinds. */
async function buildSdk(): Promise<void> {
  const dist = fresh('sdk')
  const entryPoints = ['packages/sdk/src/index.ts']
  const { metafile } = await build({ ...COMMON, entryPoints, format: 'esm', outfile: join(dist, 'index.js') })
  await build({ ...COMMON, entryPoints, format: 'cjs', outfile: join(dist, 'cjs/index.js') })
  writeJson(join(dist, 'cjs/package.json'), { type: 'commonjs' })
  const declarations = sdkDeclarations()
  writeDeclarations(dist, declarations)
  writeDeclarations(join(dist, 'cjs'), declarations)
  complete('sdk', metafile, {
    main: './cjs/index.js',
    types: './index.d.ts',
    exports: {
      '.': {
        import: { types: './index.d.ts', default: './index.js' },
        require: { types: './cjs/index.d.ts', default: './cjs/index.js' },
      },
      './package.json': './package.json',
    },
    files: ['**/*.js', '**/*.d.ts', 'cjs'],
  })
}

/** One file for each verb, so that a start loads only what it uses. The server's part stays out. */
async function buildCli(): Promise<void> {
  const dist = fresh('cli')
  const { metafile } = await build({
    ...COMMON,
    entryPoints: { airlock: 'packages/cli/src/installed.ts', main: 'packages/cli/src/main.ts' },
    format: 'esm',
    splitting: true,
    outdir: join(dist, 'lib'),
    external: ['@airlock/supervisor', '@airlock/supervisor/*', '@airlock/data-plane', '@airlock/data-plane/*'],
  })
  writeDeclarations(join(dist, 'lib'), cliDeclarations())
  chmodSync(join(dist, 'lib/airlock.js'), 0o755)
  complete('cli', metafile, {
    bin: { airlock: './lib/airlock.js' },
    exports: { '.': { types: './lib/main.d.ts', default: './lib/main.js' }, './package.json': './package.json' },
    files: ['lib', 'THIRD-PARTY-LICENSES'],
  })
}

function fresh(name: string): string {
  const dist = join(ROOT, 'packages', name, 'dist')
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(dist, { recursive: true })
  return dist
}

/** Everything beside the code: the manifest, what to read, and under which terms. */
function complete(name: string, metafile: Metafile, manifest: Readonly<Record<string, unknown>>): void {
  const source = join(ROOT, 'packages', name)
  const dist = join(source, 'dist')
  const { name: title, version, description, license, type, engines } = parsePackage(join(source, 'package.json'))
  writeJson(join(dist, 'package.json'), { name: title, version, description, license, type, engines, ...manifest })
  cpSync(join(source, 'README.md'), join(dist, 'README.md'))
  cpSync(join(ROOT, 'LICENSE'), join(dist, 'LICENSE'))
  const others = licenses(metafile)
  if (others !== '') writeFileSync(join(dist, 'THIRD-PARTY-LICENSES'), others)
  const bytes = Object.values(metafile.outputs).reduce((sum, output) => sum + output.bytes, 0)
  console.log(`built ${title} ${version}: ${Math.ceil(bytes / 1024)} KB`)
}

/** The terms of whatever was bundled. Fails closed: what has none is not ours to give away. */
function licenses(metafile: Metafile): string {
  const bundled = Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs))
  const places = bundled.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [])
  return [...new Set(places)]
    .toSorted()
    .map((place) => {
      const { name, version } = parsePackage(join(ROOT, place, 'package.json'))
      return `${name} ${version}\n\n${readFileSync(join(ROOT, place, 'LICENSE'), 'utf8').trim()}\n`
    })
    .join('\n\n')
}

function writeDeclarations(directory: string, declarations: Declarations): void {
  for (const [name, text] of declarations) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
}

function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly description?: string
  readonly license?: string
  readonly type?: string
  readonly engines?: Readonly<Record<string, string>>
}

function parsePackage(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8')) as Manifest
}
