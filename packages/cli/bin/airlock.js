#!/usr/bin/env node
// Plain JavaScript that any Node can read: it finds one that is new enough for the rest.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NEEDED = 24

if (Number(process.versions.node.split('.')[0]) >= NEEDED) {
  const { main } = await import(findBundle())
  process.exit(await main(process.argv.slice(2)))
} else {
  const node = findNode()
  if (node) await runWith(node)
  else {
    process.stderr.write(
      `error: Airlock needs Node ${NEEDED} or later and this is ${process.version}: install it, or run "npm ci" where Airlock is.\n`,
    )
    process.exitCode = 1
  }
}

function findBundle() {
  const bundle = new URL('../../../dist/cli/main.js', import.meta.url)
  if (existsSync(bundle)) return bundle.href
  process.stderr.write('error: Airlock is not built: run "npm run build" where it is.\n')
  process.exit(1)
}

/** The Node that `npm ci` installs beside us as a package of its own. */
function findNode() {
  const name = `node-${process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'node')
  } catch {
    // Not installed on this machine: optional, as the platform may have none.
    return undefined
  }
}

/** Becomes that process for all to see: its output, its exit code, the signals meant for it. */
async function runWith(node) {
  const { spawn } = await import('node:child_process')
  const [verb, ...rest] = process.argv.slice(2)
  // A server must not outlive us: SIGKILL is the one signal that cannot be passed on.
  const words = verb === 'serve' ? [verb, '--parent', String(process.pid), ...rest] : process.argv.slice(2)
  const child = spawn(node, [fileURLToPath(import.meta.url), ...words], { stdio: 'inherit' })
  // A terminal sends Ctrl-C to both of us: passing it on would make it two.
  const onTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      if (signal !== 'SIGINT' || !onTerminal) child.kill(signal)
    })
  child.on('error', (error) => {
    process.stderr.write(`error: ${node} could not be started: ${error.message}\n`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
