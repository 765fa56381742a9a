import { AirlockError, type AgentMetrics, type MetricEvent, type MetricSample, type Sandbox } from '@airlock/sdk'
import type { Context } from '../context.ts'
import { Interrupts } from '../run/interrupts.ts'
import { compactBytes, formatPercent } from '../text/units.ts'
import { printedLine, type Line } from './line.ts'
import { alertText, timeOf } from './metrics-view.ts'
import { Rates } from './rates.ts'
import { eachRound } from './rounds.ts'
import { totalLine } from './top-view.ts'
import { SHOWN, usesOf, type Shown } from './use.ts'

const SAMPLED_EVERY_MS = 5_000

/** A line for each sample and alert until the sandbox has ended, or Ctrl-C: so it is meant to end, and that is no failure. */
export async function followSandbox(
  context: Context,
  sandbox: Sandbox,
  options: { readonly json: boolean },
): Promise<void> {
  const { terminal } = context
  using interrupts = new Interrupts()
  const signal = interrupts.asked
  const samples = new SampleLines(sandbox)
  try {
    for await (const event of sandbox.followMetrics({ signal }))
      if (options.json) await terminal.printJson(event, 'line')
      else await terminal.print(printedLine(terminal, await lineOf(samples, event, signal)))
  } catch (error) {
    if (!signal.aborted) throw error
  }
  context.exitCode = interrupts.exitCode
}

/** The sums of an agent every few seconds, as often as a server samples by default, until Ctrl-C. */
export async function followAgent(
  context: Context,
  look: (signal: AbortSignal) => Promise<AgentMetrics>,
  options: { readonly json: boolean },
): Promise<void> {
  const { terminal } = context
  using interrupts = new Interrupts()
  const told = { interrupts, note: (text: string) => terminal.note(text) }
  await eachRound({ look, everyMs: SAMPLED_EVERY_MS }, told, async (metrics) => {
    const time = { text: `${new Date().toLocaleTimeString('en-GB')}  `, style: 'dim' } as const
    if (options.json) await terminal.printJson(metrics, 'line')
    else await terminal.print(printedLine(terminal, [time, ...totalLine(metrics.total)]))
  })
  context.exitCode = interrupts.exitCode
}

async function lineOf(samples: SampleLines, event: MetricEvent, signal: AbortSignal): Promise<Line> {
  switch (event.event) {
    case 'sample':
      return samples.next(event.sample, signal)
    case 'alert':
      return alertText(event.alert)
    case 'cleared':
      return [{ text: `${event.resource} is below its threshold again since ${timeOf(event.at)}`, style: 'green' }]
    case 'ended':
      return [{ text: 'The sandbox has ended.', style: 'dim' }]
  }
}

class SampleLines {
  readonly #sandbox: Sandbox
  readonly #rates = new Rates()

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  async next(sample: MetricSample, signal: AbortSignal): Promise<Line> {
    await this.#renew(signal)
    this.#rates.update([{ sandbox: this.#sandbox.id, now: sample }])
    const uses = usesOf(this.#sandbox.data.limits, sample)
    const shares = SHOWN.flatMap((resource): Line => [
      { text: `  ${resource} `, style: 'dim' },
      { text: `${shortAmount(resource, uses[resource].used)} ${formatPercent(uses[resource].percent).padStart(4)}` },
    ])
    return [{ text: timeOf(sample.at), style: 'dim' }, ...shares, ...this.#io()]
  }

  /** Limits can change while it lives. A server that does not answer now may do so the next time. */
  async #renew(signal: AbortSignal): Promise<void> {
    try {
      await this.#sandbox.refresh(signal)
    } catch (error) {
      if (!(error instanceof AirlockError && error.retryable)) throw error
    }
  }

  #io(): Line {
    const rate = this.#rates.of(this.#sandbox.id)
    const text = (amount: number | null | undefined): string =>
      `${amount === null || amount === undefined ? '-' : compactBytes(amount)}/s`.padStart(6)
    return [
      { text: '  read ', style: 'dim' },
      { text: text(rate?.read) },
      { text: '  written ', style: 'dim' },
      { text: text(rate?.written) },
    ]
  }
}

function shortAmount(resource: Shown, amount: number | null): string {
  if (amount === null) return '   -'
  if (resource === 'cpu') return amount.toFixed(2).padStart(4)
  return (resource === 'pids' ? String(amount) : compactBytes(amount)).padStart(4)
}
