#!/usr/bin/env node
// The program as users install it, built by `npm run build:packages`; in the repository it is bin/airlock.js.

const NEEDED = 20

if (Number.parseInt(process.versions.node, 10) < NEEDED) {
  process.stderr.write(`error: airlock needs Node ${NEEDED} or later and this is ${process.version}.\n`)
  process.exit(1)
}
const { main } = await import('./main.ts')
process.exit(await main(process.argv.slice(2)))
