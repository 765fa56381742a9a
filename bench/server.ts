import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { removeHome } from '../test/support/leftovers.ts'
import { serverEnvironment } from './config.ts'

const CLI = fileURLToPath(new URL('../packages/cli/bin/airlock.js', import.meta.url))
const READY_MS = 60_000

/** A server as a user starts it, with a state of its own. */
export interface BenchServer {
  readonly client: Airlock
  readonly url: string
  readonly key: string
  readonly home: string
  /** Ends its sandboxes; something left behind is an error. */
  stop(): Promise<void>
}

/** What is measured is one agent's and one key's, and more than one has by default. */
const AMPLE = {
  AIRLOCK_AGENT_SANDBOXES: '100',
  AIRLOCK_AGENT_MEMORY_MB: '100000',
  AIRLOCK_AGENT_DISK_MB: '1000000',
  AIRLOCK_AGENT_CPUS: '100',
  AIRLOCK_KEY_REQUESTS_PER_S: '100000',
  AIRLOCK_TENANT_REQUESTS_PER_S: '100000',
}

export async function startServer(settings: Readonly<Record<string, string>> = {}): Promise<BenchServer> {
  const home = mkdtempSync('/tmp/al-bench-')
  chmodSync(home, 0o711)
  const child = spawn(process.execPath, [CLI, 'serve', '--json'], {
    env: serverEnvironment(home, { AIRLOCK_CAPACITY: '100', ...AMPLE, ...settings }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const line = once(createInterface({ input: child.stdout }), 'line', { signal: AbortSignal.timeout(READY_MS) })
  const first = await Promise.race([line, exited.then(() => undefined)])
  if (!first) throw new TypeError('The server did not start: see above.')
  const { url, developerKey } = JSON.parse(String(first[0])) as { url: string; developerKey: string }
  const key = readFileSync(developerKey, 'utf8').trim()
  return {
    client: new Airlock({ url, apiKey: key }),
    url,
    key,
    home,
    stop: async () => {
      child.kill('SIGINT')
      await exited
      await removeHome(home)
    },
  }
}
