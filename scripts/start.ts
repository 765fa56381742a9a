import { spawnSync } from 'node:child_process'
import { argv, exit, getuid } from 'node:process'
import { fileURLToPath } from 'node:url'
import { serve } from '@airlock/supervisor'
import { installMissing } from './system-packages.ts'

// What `npm start` does: completes the machine, builds the guest, serves.
exit(await start())

async function start(): Promise<number> {
  // Without root nothing of this helps: serve says what does.
  if (getuid?.() === 0 && !(installMissing([]) && buildGuest())) return 1
  return serve(argv.slice(2))
}

function buildGuest(): boolean {
  const program = fileURLToPath(new URL('../packages/guest/build.ts', import.meta.url))
  const built = spawnSync(process.execPath, [program], { stdio: ['ignore', 'ignore', 'inherit'] })
  return built.status === 0
}
