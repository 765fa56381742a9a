import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'
import { replaceFile } from '../../scripts/replace-file.ts'

/** Where to, for who wants it elsewhere; the drivers of interpreters go beside it. */
const OUTFILE = process.argv[2] ?? new URL('dist/guest.cjs', import.meta.url).pathname
const KERNELS = join(dirname(OUTFILE), 'kernels')

/** What an interpreter reads as it is, and what is made one file first. */
const COPIED = /[.](?:py|sh)$/u
const BUNDLED = { 'node/main.ts': 'node.cjs', 'node/control-main.ts': 'node-control.cjs' }

const options = {
  bundle: true,
  platform: 'node',
  // Node starts a script 5 ms faster than a module.
  format: 'cjs',
  target: 'node24',
  minify: false,
  logLevel: 'warning',
  write: false,
} as const

await buildKernels()
await bundle('main.ts', OUTFILE)
await bundle('tool/main.ts', join(dirname(OUTFILE), 'airlock-tool.cjs'))
console.log(`built the guest: ${Math.ceil(statSync(OUTFILE).size / 1024)} KB`)

/** Files are replaced one by one: a sandbox may have the directory bound. */
async function buildKernels(): Promise<void> {
  mkdirSync(KERNELS, { recursive: true })
  chmodSync(KERNELS, 0o755)
  const names = readdirSync(source('kernels'), { encoding: 'utf8', recursive: true })
  for (const name of names.filter((path) => COPIED.test(path)))
    replaceFile(join(KERNELS, basename(name)), readFileSync(source(`kernels/${name}`)))
  for (const [from, to] of Object.entries(BUNDLED)) await bundle(`kernels/${from}`, join(KERNELS, to))
}

async function bundle(from: string, outfile: string): Promise<void> {
  const { outputFiles } = await build({ ...options, entryPoints: [source(from)], outfile })
  for (const { path, contents } of outputFiles) replaceFile(path, contents)
}

function source(name: string): string {
  return new URL(`src/${name}`, import.meta.url).pathname
}
