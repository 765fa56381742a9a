import { Agent, get } from 'node:http'
import type { BenchServer } from '../server.ts'
import type { Metric } from '../report.ts'
import type { Samples } from './race.ts'

const IN_FLIGHT = 16
const NAME = 'Airlock'

/** Reading requests with a key. The client runs on the same machine and takes its share of it. */
export async function measureRequests(
  server: BenchServer,
  plan: { readonly rounds: number; readonly requests: number; readonly samples: Samples },
): Promise<void> {
  const sandbox = await server.client.sandboxes.create()
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT })
  const paths: readonly (readonly [Metric, string])[] = [
    ['listPerSecond', '/v1/sandboxes'],
    ['getPerSecond', `/v1/sandboxes/${sandbox.id}`],
  ]
  try {
    for (const [, path] of paths) await measure({ server, agent, path, requests: plan.requests })
    for (let round = 0; round < plan.rounds; round++)
      for (const [metric, path] of paths)
        plan.samples.add(metric, NAME, await measure({ server, agent, path, requests: plan.requests }))
  } finally {
    agent.destroy()
    await sandbox.terminate()
  }
}

interface Load {
  readonly server: BenchServer
  readonly agent: Agent
  readonly path: string
  readonly requests: number
}

async function measure(load: Load): Promise<number> {
  let sent = 0
  const worker = async () => {
    while (sent++ < load.requests) await ask(load)
  }
  const before = performance.now()
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  return load.requests / ((performance.now() - before) / 1000)
}

async function ask({ server, agent, path }: Load): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const options = { agent, headers: { authorization: `Bearer ${server.key}` } }
    get(new URL(path, server.url), options, (response) => {
      if (response.statusCode !== 200) reject(new TypeError(`${path} answered ${response.statusCode}`))
      response.resume().once('end', resolve)
    }).once('error', reject)
  })
}
