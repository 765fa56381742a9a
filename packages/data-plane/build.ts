import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { build } from 'esbuild'
import { replaceFile } from '../../scripts/replace-file.ts'

const OUTFILE = new URL('dist/unpack.mjs', import.meta.url).pathname

/** The unpacker of images runs alone, without rights, and from the state directory: one file has all that it needs. */
const { outputFiles } = await build({
  entryPoints: [new URL('src/isolation/backends/oci/images/unpack/main.ts', import.meta.url).pathname],
  outfile: OUTFILE,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  logLevel: 'warning',
  write: false,
})
mkdirSync(dirname(OUTFILE), { recursive: true })
for (const { path, contents } of outputFiles) replaceFile(path, contents)
