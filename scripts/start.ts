import { spawnSync } from 'node:child_process'
import { argv, exit, getuid } from 'node:process'
import { fileURLToPath } from 'node:url'
import { installMissing } from './system-packages.ts'

const PROGRAM = new URL('../packages/cli/bin/airlock.js', import.meta.url)

// What `npm start` does: completes the machine, builds, and goes on as `airlock serve`.
// Without root nothing of this helps: serve says what does.
if (getuid?.() === 0 && !(installMissing([]) && build())) exit(1)
argv.splice(1, 1, fileURLToPath(PROGRAM), 'serve')
await import(PROGRAM.href)

function build(): boolean {
  const program = fileURLToPath(new URL('build.ts', import.meta.url))
  const built = spawnSync(process.execPath, [program], { stdio: ['ignore', 'ignore', 'inherit'] })
  return built.status === 0
}
