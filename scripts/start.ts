import { spawnSync } from 'node:child_process'
import { argv, exit, getuid } from 'node:process'
import { fileURLToPath } from 'node:url'
import { serve } from '@airlock/supervisor'
import { installMissing } from './system-packages.ts'

// What `npm start` does: completes the machine, builds what sandboxes run, serves.
exit(await start())

async function start(): Promise<number> {
  // Without root nothing of this helps: serve says what does.
  if (getuid?.() === 0 && !(installMissing([]) && build())) return 1
  return serve(argv.slice(2))
}

function build(): boolean {
  const program = fileURLToPath(new URL('build.ts', import.meta.url))
  const built = spawnSync(process.execPath, [program], { stdio: ['ignore', 'ignore', 'inherit'] })
  return built.status === 0
}
