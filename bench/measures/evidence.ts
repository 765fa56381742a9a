import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { RecorderClient } from '@airlock/audit'
import type { NewRecord } from '@airlock/contract'
import { createLog } from '@airlock/std'
import type { BenchServer } from '../server.ts'
import type { Samples } from './race.ts'

const IN_FLIGHT = 1024
const TENANT = 'bench'
const NAME = 'Airlock'

/** Records that are on disk when they are counted, through the recorder of the running server. */
export async function measureEvidence(server: BenchServer, plan: Plan): Promise<void> {
  const spillDir = join(server.home, 'bench-spill')
  mkdirSync(spillDir)
  const log = createLog({ process: 'bench', level: 'warn', write: (line) => process.stderr.write(line) })
  const client = new RecorderClient({ socket: join(server.home, 'run', 'recorder-control-plane.sock'), spillDir, log })
  try {
    await append(client, IN_FLIGHT)
    for (let round = 0; round < plan.rounds; round++) {
      const before = performance.now()
      await append(client, plan.records)
      plan.samples.add('recordsPerSecond', NAME, plan.records / ((performance.now() - before) / 1000))
      await oneByOne(client, plan)
    }
  } finally {
    client.close()
  }
}

interface Plan {
  readonly rounds: number
  readonly records: number
  readonly samples: Samples
}

async function append(client: RecorderClient, count: number): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await client.require(aRecord(next++))
  }
  await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, count) }, worker))
}

async function oneByOne(client: RecorderClient, { records, samples }: Plan): Promise<void> {
  for (let count = 0; count < records / 100; count++) {
    const before = performance.now()
    await client.require(aRecord(count))
    samples.add('recordMs', NAME, performance.now() - before)
  }
}

/** As large as the record of a command. */
function aRecord(n: number): NewRecord {
  const payload = { command: `cmd_${n}`, argv: ['python3', '-c', 'print(6*7)'], cwd: '/workspace', timeoutMs: 300_000 }
  return { tenant: TENANT, agent: 'default', actor: 'key:bench', point: 'command.run', status: 'requested', payload }
}
