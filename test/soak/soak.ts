import { execFile } from 'node:child_process'
import { accessSync, constants, copyFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { removeHome, sweep } from '../support/leftovers.ts'
import { strike } from './blows.ts'
import { type Finding, Findings } from './findings.ts'
import { countHost, type Idle, lookWhenIdle } from './inventory.ts'
import { judgeCounts, judgeIdle, judgeProcesses, judgeSurvivors, type Row } from './judge.ts'
import { Lane, type LaneContext, retried } from './lane.ts'
import { AGENTS, Plan, type Tier } from './plan.ts'
import { SoakServer } from './server.ts'
import { Weather } from './weather.ts'

export interface SoakOptions {
  readonly minutes: number
  readonly seed: number
  /** How many at once. */
  readonly sandboxes: number
  /** Where homes of servers are made. */
  readonly prefix?: string
  readonly note?: (text: string) => void
}

export interface SoakReport {
  readonly seed: number
  readonly sandboxes: number
  readonly minutes: number
  readonly rounds: number
  /** Of all rounds that were done: the same seed, lanes and number of rounds give the same. */
  readonly plan: string
  readonly tiers: readonly Tier[]
  /** How often each operation was answered as it should be, and each error that the situation explains. */
  readonly done: Readonly<Record<string, number>>
  readonly refused: Readonly<Record<string, number>>
  readonly rows: readonly Row[]
  readonly evidence: string
  readonly findings: readonly Finding[]
  readonly ok: boolean
}

const CLI = fileURLToPath(new URL('../../packages/cli/bin/airlock.js', import.meta.url))
const RUNSC = ['/usr/local/bin/runsc', '/usr/bin/runsc']
/** After so many rounds everything is ended and looked for. */
const ROUNDS_TOGETHER = 8
/** The calm stretch after the time: its samples of memory, and which of them count. */
const CALM = { samples: 9, warm: 2, share: 0.4 }
const MINUTE_MS = 60_000

/** Uses a server of its own for some minutes as no user would, then looks for what is left. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const server = new SoakServer(options.prefix ?? '/tmp/al-soak-')
  try {
    const hostBefore = await countHost(server.home)
    await server.start()
    const context = await prepare(server)
    const run = new Run(options, context)
    await run.rough()
    await run.calm()
    const evidence = await verifyEvidence(server)
    await server.stop('SIGINT')
    const rows = [
      ...judgeIdle(run.calmSamples),
      ...judgeProcesses(run.calmSamples),
      ...judgeSurvivors(run.roughSamples),
      ...judgeCounts('stopped', hostBefore, await countHost(server.home)),
    ]
    const report = run.report(rows, evidence)
    if (!report.ok) options.note?.(`The log of the server is ${keepLog(server)}`)
    await removeHome(server.home, 'remove')
    return report
  } catch (error) {
    options.note?.(`The log of the server is ${keepLog(server)}`)
    await sweep(server.home)
    throw error
  }
}

async function prepare(server: SoakServer): Promise<LaneContext> {
  const { admin } = server
  // It does on purpose what the shipped rules hold up.
  const shipped = (await admin.guardian.rules()).filter(({ policy }) => policy === 'builtin')
  await admin.policies.put({ name: 'soak', off: shipped.map(({ policy, rule }) => `${policy}/${rule}`), rules: [] })
  for (const agent of AGENTS) await admin.agents.register(agent, { approve: true })
  const tiers: readonly Tier[] = RUNSC.some(isExecutable) ? ['standard', 'strict'] : ['standard']
  return { server, admin, tiers, weather: new Weather(), findings: new Findings() }
}

class Run {
  readonly roughSamples: Idle[] = []
  readonly calmSamples: Idle[] = []
  readonly #options: SoakOptions
  readonly #context: LaneContext
  readonly #lanes: readonly Lane[]
  readonly #plan: Plan
  #rounds = 0

  constructor(options: SoakOptions, context: LaneContext) {
    this.#options = options
    this.#context = context
    this.#lanes = Array.from({ length: options.sandboxes }, (_, number) => new Lane(number, context))
    this.#plan = new Plan({ seed: options.seed, lanes: options.sandboxes })
  }

  /** Everything in random order, blows included, for the given time. */
  async rough(): Promise<void> {
    const until = performance.now() + this.#options.minutes * MINUTE_MS
    while (performance.now() < until) {
      await this.#several(this.#plan, () => performance.now() < until)
      this.roughSamples.push(await this.#look('rough'))
      this.#plan.empty()
    }
  }

  /** The same without blows, by one life of each process: what memory and descriptors do over time. */
  async calm(): Promise<void> {
    const { seed, sandboxes, minutes } = this.#options
    const { server } = this.#context
    await server.stop('SIGTERM')
    await server.start()
    const plan = new Plan({ seed, lanes: sandboxes, calm: true })
    const eachMs = (minutes * MINUTE_MS * CALM.share) / CALM.samples
    for (let sample = 0; sample < CALM.samples; sample++) {
      const until = performance.now() + eachMs
      do await this.#several(plan, () => performance.now() < until)
      while (performance.now() < until)
      plan.empty()
      const idle = await this.#look('calm')
      if (sample >= CALM.warm) this.calmSamples.push(idle)
    }
  }

  report(rows: readonly Row[], evidence: string): SoakReport {
    const { seed, sandboxes, minutes } = this.#options
    const { done, refused, found } = this.#context.findings
    return {
      seed,
      sandboxes,
      minutes,
      rounds: this.#rounds,
      plan: this.#plan.hash,
      tiers: this.#context.tiers,
      done,
      refused,
      rows,
      evidence,
      findings: found,
      ok: found.length === 0 && rows.every(({ verdict }) => verdict !== 'leak') && evidence.startsWith('verifies'),
    }
  }

  async #several(plan: Plan, goesOn: () => boolean): Promise<void> {
    for (let count = 0; count < ROUNDS_TOGETHER && goesOn(); count++) await this.#round(plan)
  }

  async #round(plan: Plan): Promise<void> {
    const round = plan.next()
    const { findings } = this.#context
    findings.round = round.number
    const before = findings.found.length
    await Promise.all([
      strike(round.blows, this.#lanes, this.#context),
      ...this.#lanes.map(async (lane, number) => {
        for (const operation of round.lanes[number] ?? []) await lane.perform(operation)
      }),
    ])
    await Promise.all(this.#lanes.map(async (lane) => lane.settle()))
    this.#rounds++
    this.#tell(before)
  }

  #tell(from: number): void {
    for (const { round, lane, during, what } of this.#context.findings.found.slice(from))
      this.#options.note?.(`round ${round}, lane ${lane ?? '–'}, ${during}: ${what}`)
  }

  /** Ends everything, waits until it is quiet, and looks. What is left then is a finding at once. */
  async #look(stretch: 'rough' | 'calm'): Promise<Idle> {
    const { server, findings } = this.#context
    const before = findings.found.length
    await Promise.all(this.#lanes.map(async (lane) => lane.clear()))
    const idle = await lookWhenIdle(server, stretch === 'calm' ? 'collect' : 'keep')
    for (const [what, count] of Object.entries(idle.counts))
      if (count > 0 && !ALWAYS.has(what)) findings.fail(null, `idle, ${stretch}`, `${count} ${what}`)
    this.#tell(before)
    const { processes } = idle
    const words = Object.entries(processes).map(
      ([name, one]) => `${name} ${one.descriptors} fds, ${Math.round((one.heapKb ?? one.pssKb) / 1024)} MB`,
    )
    this.#options.note?.(`${stretch}, round ${this.#rounds}: ${findings.found.length} findings; ${words.join('; ')}`)
    return idle
  }
}

/** What a server that does nothing has too. */
const ALWAYS: ReadonlySet<string> = new Set(['processes of the server', 'unix sockets', 'files in run'])

/** By the program that a user would verify it with. */
async function verifyEvidence(server: SoakServer): Promise<string> {
  await retried(async () => server.admin.audit.head())
  const env = { ...server.environment, AIRLOCK_URL: server.url }
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'audit', 'verify', '--json'], {
      env,
      maxBuffer: 1024 * 1024,
    })
    const { ok, records, heads } = JSON.parse(stdout) as { ok: boolean; records: number; heads: number }
    return `${ok ? 'verifies' : 'broken'}: ${records} records, ${heads} signed heads`
  } catch (error) {
    return `broken: ${error instanceof Error ? error.message : String(error)}`
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Not there, or not for us.
    return false
  }
}

/** Of a run that went wrong, where it outlives the home. */
function keepLog(server: SoakServer): string {
  const kept = `${server.home}.log`
  copyFileSync(`${server.home}/logs/airlock.log`, kept)
  return kept
}
