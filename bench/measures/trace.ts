import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ECHO } from '../contenders/contender.ts'
import type { TracedStep } from '../report.ts'
import { type BenchServer, startServer } from '../server.ts'
import { quantile } from '../statistics.ts'

interface Mark {
  readonly step: string
  readonly process: string
  /** Of the clock that all processes of a machine share. */
  readonly atMs: number
}

/** Where the time goes: the steps that a server at log level `debug` tells, between the calls of the client. */
export async function traceSandboxes(rounds: number): Promise<readonly TracedStep[]> {
  const server = await startServer({ AIRLOCK_LOG_LEVEL: 'debug' })
  try {
    const runs: Mark[][] = []
    for (let round = -1; round < rounds; round++) runs.push(await callMarks(server))
    const steps = readSteps(server)
    return summarizeSteps(runs.slice(1).map((calls) => withSteps(calls, steps)))
  } finally {
    await server.stop()
  }
}

/** The median moment of each step, in the order of these moments. */
function summarizeSteps(runs: readonly (readonly Mark[])[]): readonly TracedStep[] {
  const first = runs[0] ?? []
  const steps = first.map(({ step, process }) => {
    const moments = runs.flatMap((run) => {
      const mark = run.find((each) => each.step === step)
      return mark ? [mark.atMs - (run[0]?.atMs ?? 0)] : []
    })
    return { step, process, atMs: quantile(moments, 0.5) }
  })
  const ordered = steps.toSorted((a, b) => a.atMs - b.atMs)
  return ordered.map((step, index) => ({ ...step, deltaMs: step.atMs - (ordered[index - 1]?.atMs ?? 0) }))
}

async function callMarks({ client }: BenchServer): Promise<Mark[]> {
  const marks = [mark('create asked')]
  const sandbox = await client.sandboxes.create()
  marks.push(mark('create answered'))
  await sandbox.run(ECHO.argv)
  marks.push(mark('result answered'))
  await sandbox.terminate()
  marks.push(mark('terminate answered'))
  return marks
}

function mark(step: string): Mark {
  return { step, process: 'client', atMs: Number(process.hrtime.bigint()) / 1e6 }
}

/** The steps between the first and the last call. Records come too often and at any time: they are not steps. */
function withSteps(calls: readonly Mark[], steps: readonly Mark[]): readonly Mark[] {
  const from = calls[0]?.atMs ?? 0
  const to = calls.at(-1)?.atMs ?? 0
  const between = steps.filter(({ atMs, step }) => atMs > from && atMs < to && !step.startsWith('record.'))
  return [...calls, ...between].toSorted((a, b) => a.atMs - b.atMs)
}

function readSteps(server: BenchServer): readonly Mark[] {
  return readFileSync(join(server.home, 'logs', 'airlock.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"message":"step"'))
    .map((line) => JSON.parse(line) as Mark)
}
