import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { z } from 'zod'
import { findProgram, runProgram } from '../contenders/program.ts'
import type { Metric } from '../report.ts'
import { type BenchServer, startServer } from '../server.ts'
import { MODEL_CLIENT } from './model-client.ts'
import type { Samples } from './race.ts'

const UPSTREAM = fileURLToPath(new URL('../contenders/model-upstream.ts', import.meta.url))
/** As inside, where the port and the socket lead to the door. */
const PORT = '47080'
const SOCKET = '/run/airlock/llm/llm.sock'

interface Plan {
  readonly rounds: number
  /** Calls of one round, one after the other, and with 16 at once. */
  readonly ones: number
  readonly many: number
  readonly samples: Samples
}

/**
 * Calls of a model from inside a sandbox, by the port and by the socket of its door, beside the same client that dials the same
 * upstream from the host. The upstream answers at once: what is measured is the way.
 */
export async function measureModels(plan: Plan): Promise<void> {
  const upstream = fork(UPSTREAM, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const dir = mkdtempSync(join(tmpdir(), 'al-bench-models-'))
  try {
    const [port] = (await once(upstream, 'message')) as [number]
    writeFileSync(join(dir, 'airlock.toml'), settingsOf(port))
    const server = await startServer({ AIRLOCK_CONFIG: join(dir, 'airlock.toml') })
    try {
      await measureFrom(server, String(port), plan)
    } finally {
      await server.stop()
    }
  } finally {
    upstream.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
}

async function measureFrom(server: BenchServer, port: string, { rounds, ones, many, samples }: Plan): Promise<void> {
  await allow(server)
  const node = findProgram('node')
  if (node === undefined) throw new TypeError('There is no node in /usr: the client inside is the node of the host.')
  const sandbox = await server.client.sandboxes.create({ models: ['bench'], ttlMs: 3_600_000 })
  const inside = async (at: string) => {
    const { stdout, stderr } = await sandbox.run(['node', '-e', MODEL_CLIENT, '--', at, `${ones}`, `${many}`])
    return parse(stdout, stderr)
  }
  const direct = async () => parse(await runProgram(node, ['-e', MODEL_CLIENT, '--', port, `${ones}`, `${many}`]), '')
  try {
    for (let round = 0; round < rounds; round++) {
      const [bare, bySocket, byPort] = [await direct(), await inside(SOCKET), await inside(PORT)]
      const results: readonly (readonly [readonly Metric[], Told, Told])[] = [
        [['modelPathSocket', 'modelFirstSocket', 'modelRateSocket'], bySocket, bare],
        [['modelPath', 'modelFirst', 'modelRate'], byPort, bare],
      ]
      for (const [metrics, ours, theirs] of results) {
        addTo(samples, 'Airlock', metrics, ours)
        addTo(samples, 'bare process', metrics, theirs)
      }
    }
  } finally {
    await sandbox.terminate()
  }
}

const told = z.object({ path: z.array(z.number()), first: z.array(z.number()), rate: z.number() })
type Told = z.infer<typeof told>

function parse(stdout: string, stderr: string): Told {
  if (stdout === '') throw new TypeError(`The client of models failed: ${stderr.slice(-500)}`)
  return told.parse(JSON.parse(stdout))
}

// oxlint-disable-next-line max-params -- where to, whose, what, and the numbers
function addTo(samples: Samples, contender: string, metrics: readonly Metric[], { path, first, rate }: Told): void {
  const [pathMetric, firstMetric, rateMetric] = metrics
  if (pathMetric) for (const ms of path) samples.add(pathMetric, contender, ms)
  if (firstMetric) for (const ms of first) samples.add(firstMetric, contender, ms)
  if (rateMetric) samples.add(rateMetric, contender, rate)
}

async function allow(server: BenchServer): Promise<void> {
  const apiKey = readFileSync(join(server.home, 'admin.key'), 'utf8').trim()
  const match = { models: ['bench'] }
  await new Airlock({ url: server.url, apiKey }).policies.put({
    name: 'bench',
    rules: [{ id: 'model', kind: 'model', effect: 'allow', risk: 'low', reason: 'Measured.', match }],
  })
}

function settingsOf(port: number): string {
  return `[llm.upstream.bench]
kind = "compatible"
base_url = "http://127.0.0.1:${port}/v1"
max_concurrent = 64
models = { bench = { context_window = 1000, max_output = 100, price = "free" } }
`
}
