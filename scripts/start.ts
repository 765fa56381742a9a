import { spawnSync } from 'node:child_process'
import { argv, env, exit, getuid } from 'node:process'
import { fileURLToPath } from 'node:url'
import { linkCommand } from '../packages/supervisor/src/command/link.ts'
import { installMissing } from './system-packages.ts'

const PROGRAM = new URL('../packages/cli/bin/airlock.js', import.meta.url)

// What `npm start` does: completes the machine, builds, puts `airlock` into PATH, and goes on as `airlock serve`.
// Without root nothing of this helps: serve says what does.
if (getuid?.() === 0) {
  if (!(installMissing([]) && build())) exit(1)
  link()
}
argv.splice(1, 1, fileURLToPath(PROGRAM), 'serve')
await import(PROGRAM.href)

/** A server with a directory of its own touches nothing else of the machine. Where there is no link the server says what to type. */
function link(): void {
  if (env['AIRLOCK_HOME'] !== undefined) return
  const { path, outcome } = linkCommand()
  if (outcome === 'made') console.error(`${path} leads to this clone now; "airlock uninstall" removes it.`)
}

function build(): boolean {
  const program = fileURLToPath(new URL('build.ts', import.meta.url))
  const built = spawnSync(process.execPath, [program], { stdio: ['ignore', 'ignore', 'inherit'] })
  return built.status === 0
}
