import { build } from 'esbuild'

/** The unpacker of images runs alone, without rights, and from the state directory: one file has all that it needs. */
await build({
  entryPoints: [new URL('src/isolation/backends/oci/images/unpack/main.ts', import.meta.url).pathname],
  outfile: new URL('dist/unpack.mjs', import.meta.url).pathname,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  logLevel: 'warning',
})
