import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createInterface } from 'node:readline'
import { Cleanup } from '@airlock/std'
import type { Contender } from '../contenders/contender.ts'
import type { Metric } from '../report.ts'
import type { BenchServer } from '../server.ts'
import { inTurn, type Samples } from './race.ts'

const CODE = '1+1'
const VALUE = '2'
/** Until the just-in-time compilers of all processes are done with the way of a step: what it costs falls until then. */
const WARM_STEPS = 3000
const STEPS_IN_A_ROUND = 25

/** What a user would write without us: a line of JSON in, a line of JSON out. */
const BARE = `
import json, sys
names = {}
for line in sys.stdin:
    value = eval(json.loads(line)["code"], names)
    print(json.dumps({"value": repr(value)}), flush=True)
`

interface Runner {
  readonly metric: Metric
  readonly contender: string
  readonly run: () => Promise<unknown>
}

/**
 * One trivial expression in an interpreter that lives. Each of ours runs its steps one after another, as whoever uses it
 * would, and in each round the bare interpreter runs as many before or after it: so both meet the same machine, and neither
 * runs with what the other left in its caches. Docker has rounds of its own, for what its daemon does after an `exec` would
 * fall on whoever comes next. All goes through the public API with an ordinary key, durable and with its evidence.
 */
export async function raceSteps(field: {
  readonly server: BenchServer
  readonly contenders: readonly Contender[]
  readonly samples: Samples
  readonly steps: number
}): Promise<void> {
  const undo = new Cleanup()
  try {
    const bare = bareInterpreter(undo)
    const ours = await ourSteps(field.server, undo)
    for (const runner of [bare, ...ours]) await runMany(runner, WARM_STEPS, undefined)
    const pairs = ours.flatMap((runner) => [bare, runner])
    for (let round = 0; round * STEPS_IN_A_ROUND < field.steps; round++)
      for (const runner of inTurn(pairs, round)) await runMany(runner, STEPS_IN_A_ROUND, field.samples)
    const docker = await dockerExec(field.contenders, undo)
    if (docker) await runMany(docker, field.steps, field.samples)
  } finally {
    for (const { name, cause } of await undo.run()) console.error(`${name} could not be ended:`, cause)
  }
}

async function runMany(runner: Runner, count: number, samples: Samples | undefined): Promise<void> {
  for (let step = 0; step < count; step++) await sample(runner, samples)
}

async function sample({ metric, contender, run }: Runner, samples: Samples | undefined): Promise<void> {
  const before = performance.now()
  const value = await run()
  samples?.add(metric, contender, performance.now() - before)
  if (value !== VALUE) throw new TypeError(`${contender} answered ${JSON.stringify(value)}.`)
}

function bareInterpreter(undo: Cleanup): Runner {
  const child = spawn('python3', ['-c', BARE], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  undo.add('bare interpreter', async () => {
    child.stdin.end()
    await exited
  })
  const lines = createInterface({ input: child.stdout })
  const run = async (): Promise<unknown> => {
    const answer = once(lines, 'line')
    child.stdin.write(`${JSON.stringify({ code: CODE })}\n`)
    const [line] = await answer
    return (JSON.parse(String(line)) as { readonly value: unknown }).value
  }
  return { metric: 'step', contender: 'bare process', run }
}

/** The same session by plain HTTP and by the SDK, whose answer comes as events; and the other two interpreters. */
async function ourSteps(server: BenchServer, undo: Cleanup): Promise<readonly Runner[]> {
  const sandbox = await server.client.sandboxes.create({ template: 'base' })
  undo.add('sandbox', async () => void (await sandbox.terminate()))
  const agent = new Agent({ keepAlive: true })
  undo.add('connections', () => agent.destroy())
  const open = async (runtime: 'python' | 'node' | 'bash') => server.client.sessions.create({ runtime, sandbox })
  const python = await open('python')
  const node = await open('node')
  const bash = await open('bash')
  const call = { server, agent }
  return [
    { metric: 'step', contender: 'Airlock', run: async () => stepByHttp(call, python.id, CODE) },
    { metric: 'stepSdk', contender: 'Airlock', run: async () => (await python.run(CODE)).outputs[0]?.text },
    { metric: 'stepNode', contender: 'Airlock', run: async () => stepByHttp(call, node.id, CODE) },
    { metric: 'stepBash', contender: 'Airlock', run: async () => stepByHttp(call, bash.id, 'echo $((1+1))') },
  ]
}

interface Answer {
  readonly stdout: string
  readonly outputs: readonly { readonly data: Readonly<Record<string, unknown>> }[]
}

async function stepByHttp(
  { server, agent }: { readonly server: BenchServer; readonly agent: Agent },
  session: string,
  code: string,
): Promise<unknown> {
  // As little as there is to an HTTP client: what it costs is counted, too.
  const { hostname, port } = new URL(server.url)
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' }
  const asked = { hostname, port, path: `/v1/sessions/${session}/steps`, method: 'POST', agent, headers }
  const text = await new Promise<string>((resolve, reject) => {
    const outgoing = request(asked, (response) => {
      if (response.statusCode !== 200) reject(new TypeError(`a step answered ${response.statusCode}`))
      let said = ''
      response.setEncoding('utf8').on('data', (more: string) => (said += more))
      response.once('end', () => resolve(said)).once('error', reject)
    })
    outgoing.once('error', reject).end(JSON.stringify({ code }))
  })
  const answer = JSON.parse(text) as Answer
  return answer.outputs[0]?.data['text/plain'] ?? answer.stdout.trim()
}

/** It has no interpreter that stays: the nearest is a program in a container that runs. */
async function dockerExec(contenders: readonly Contender[], undo: Cleanup): Promise<Runner | undefined> {
  const docker = contenders.find(({ name }) => name === 'Docker')
  if (!docker) return undefined
  const place = await docker.open()
  undo.add('container', async () => place.close())
  const run = async (): Promise<string> => {
    await place.run()
    return VALUE
  }
  return { metric: 'step', contender: docker.name, run }
}
