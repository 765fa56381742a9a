import { statSync } from 'node:fs'
import { build } from 'esbuild'

/** Where to, for who wants it elsewhere. */
const OUTFILE = process.argv[2] ?? new URL('dist/guest.cjs', import.meta.url).pathname

await build({
  entryPoints: [new URL('src/main.ts', import.meta.url).pathname],
  outfile: OUTFILE,
  bundle: true,
  platform: 'node',
  // Node starts a script 5 ms faster than a module.
  format: 'cjs',
  target: 'node24',
  minify: false,
  logLevel: 'warning',
})
console.log(`built the guest: ${Math.ceil(statSync(OUTFILE).size / 1024)} KB`)
