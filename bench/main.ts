import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Cleanup } from '@airlock/std'
import { isWhole, parseConfig, USAGE, type BenchConfig } from './config.ts'
import { airlock } from './contenders/airlock.ts'
import { bareProcess } from './contenders/bare.ts'
import type { Contender } from './contenders/contender.ts'
import { docker } from './contenders/docker.ts'
import { ociRuntime } from './contenders/oci.ts'
import { makeRootfs } from './contenders/rootfs.ts'
import { renderReport, replaceGenerated } from './document.ts'
import { describeMachine, kindOf } from './machine.ts'
import { measureMemory, raceCrowds } from './measures/crowd.ts'
import { measureDecisions } from './measures/decision.ts'
import { measureDensity } from './measures/density.ts'
import { measureEvidence } from './measures/evidence.ts'
import { measureFlood } from './measures/flood.ts'
import { measureModels } from './measures/model.ts'
import { measureMonitor } from './measures/monitor.ts'
import { racePauses } from './measures/pause.ts'
import { raceCold, raceCommands, Samples } from './measures/race.ts'
import { measureRequests } from './measures/requests.ts'
import { raceSteps } from './measures/step.ts'
import { traceSandboxes } from './measures/trace.ts'
import type { MeasureName, Report } from './report.ts'
import { type BenchServer, startServer } from './server.ts'

const RESULTS = fileURLToPath(new URL('results/', import.meta.url))
const DOCUMENT = fileURLToPath(new URL('../docs/performance.md', import.meta.url))

async function main(): Promise<void> {
  if (process.argv.includes('--help')) return console.log(USAGE)
  const config = parseConfig(process.argv.slice(2))
  const report = await run(config)
  console.log(config.json ? JSON.stringify(report, null, 2) : renderReport(report))
  if (isWhole(config)) write(report)
}

async function run(config: BenchConfig): Promise<Report> {
  const undo = new Cleanup()
  try {
    const scratch = mkdtempSync('/tmp/al-bench-scratch-')
    undo.add('scratch', () => rmSync(scratch, { recursive: true, force: true }))
    const machine = describeMachine(scratch)
    const server = await startServer()
    undo.add('server', () => server.stop())
    const { contenders, skipped } = await gather(server, scratch, undo)
    const samples = new Samples()
    let trace: Report['trace'] = []
    for (const name of config.only) {
      console.error(`${name}…`)
      // It has a server of its own, and comes while the machine is as it was for the cold ones.
      if (name === 'trace') trace = await traceSandboxes(config.quick ? 3 : 15)
      else await MEASURE[name]({ contenders, server, samples, quick: config.quick, fill: config.fill })
    }
    return {
      date: new Date().toISOString(),
      isQuick: config.quick,
      machine,
      contenders: contenders.map(({ name, about }) => ({ name, about })),
      skipped,
      results: samples.results,
      trace,
    }
  } finally {
    for (const { name, cause } of await undo.run()) console.error(`${name} could not be ended:`, cause)
  }
}

interface Field {
  readonly contenders: readonly Contender[]
  readonly server: BenchServer
  readonly samples: Samples
  readonly quick: boolean
  readonly fill: boolean
}

/** How often each is measured, whole and quick. */
const MEASURE: Record<Exclude<MeasureName, 'trace'>, (field: Field) => Promise<void>> = {
  cold: async (field) => raceCold({ ...field, rounds: field.quick ? 5 : 40 }),
  command: async (field) => raceCommands({ ...field, rounds: field.quick ? 10 : 100 }),
  step: async (field) => raceSteps({ ...field, steps: field.quick ? 50 : 300 }),
  crowd: async (field) => raceCrowds({ ...field, rounds: field.quick ? 1 : 5 }),
  memory: async (field) => measureMemory({ ...field, rounds: 1 }),
  evidence: async ({ server, samples, quick }) =>
    measureEvidence(server, { samples, rounds: quick ? 1 : 5, records: quick ? 5_000 : 20_000 }),
  requests: async ({ server, samples, quick }) =>
    measureRequests(server, { samples, rounds: quick ? 1 : 5, requests: quick ? 1_000 : 5_000 }),
  // It has a server of its own, with the default rates.
  flood: async ({ samples, quick }) => measureFlood({ samples, rounds: quick ? 10 : 100 }),
  // It has a server of its own, with an upstream.
  model: async ({ samples, quick }) =>
    measureModels({ samples, rounds: quick ? 1 : 5, ones: quick ? 50 : 300, many: quick ? 300 : 3_000 }),
  decision: async ({ samples, quick }) => measureDecisions({ samples, rounds: quick ? 2 : 20 }),
  pause: async (field) => racePauses({ ...field, rounds: field.quick ? 20 : 200 }),
  monitor: async ({ samples, quick }) =>
    measureMonitor(
      quick
        ? { samples, sandboxes: 20, bareGroups: 80, windows: 1 }
        : { samples, sandboxes: 200, bareGroups: 800, windows: 3 },
    ),
  density: async (field) => measureDensity({ ...field, count: field.quick ? 30 : 100 }),
}

async function gather(
  server: BenchServer,
  scratch: string,
  undo: Cleanup,
): Promise<{ contenders: readonly Contender[]; skipped: Report['skipped'] }> {
  const plan = { rootfs: await makeRootfs(join(scratch, 'rootfs')), scratch }
  const contenders: Contender[] = []
  const skipped: { name: string; reason: string }[] = []
  for (const [name, make] of CONTENDERS) {
    const made = await make(plan, server)
    if (typeof made === 'string') skipped.push({ name, reason: made })
    else {
      contenders.push(made)
      undo.add(name, () => made.close())
    }
  }
  return { contenders, skipped }
}

/** How each is made, or why it cannot be. */
const CONTENDERS: readonly (readonly [string, (plan: Plan, server: BenchServer) => Promise<Contender | string>])[] = [
  ['Airlock', async (_plan, server) => airlock(server)],
  ['bare process', async () => bareProcess()],
  ['crun', async (plan) => ociRuntime({ ...plan, name: 'crun' })],
  ['Docker', async (plan) => docker(plan)],
  ['runsc', async (plan) => ociRuntime({ ...plan, name: 'runsc' })],
]

interface Plan {
  readonly rootfs: string
  readonly scratch: string
}

function write(report: Report): void {
  mkdirSync(RESULTS, { recursive: true })
  const path = join(RESULTS, `${report.date.slice(0, 10)}-${kindOf(report.machine)}.json`)
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`)
  writeFileSync(DOCUMENT, replaceGenerated(readFileSync(DOCUMENT, 'utf8'), renderReport(report)))
  console.error(`Wrote ${path} and ${DOCUMENT}.`)
}

await main()
