import { AirlockError, type TenantMetrics } from '@airlock/sdk'
import type { Context } from '../context.ts'
import { Interrupts } from '../run/interrupts.ts'
import type { Terminal } from '../text/terminal.ts'
import { printedLine } from './line.ts'
import { Rates } from './rates.ts'
import { eachRound, firstLook, rounds, type Looking } from './rounds.ts'
import { Screen } from './screen.ts'
import { NO_SANDBOXES, TopPage, type PageOptions } from './top-page.ts'
import { sandboxLines, sortSandboxes, totalLine } from './top-view.ts'

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

export type TopOptions = PageOptions & Looking<TenantMetrics>

/** Takes the terminal, and shows it there until a key or a signal ends it. */
export async function watchTop(context: Context, options: TopOptions): Promise<void> {
  const { terminal } = context
  using interrupts = new Interrupts()
  const left = new AbortController()
  const signal = AbortSignal.any([left.signal, interrupts.asked])
  const page = new TopPage(options)
  // Before the screen is taken, so that what cannot work at all is said where it stays.
  page.update(await firstLook(options, interrupts))
  using screen = new Screen(terminal, {
    onKey: (key) => {
      if (key === 'q' || key === CTRL_C || key === CTRL_D) left.abort()
      else if (page.press(key)) draw()
    },
    onResize: () => draw(),
    onGone: () => left.abort(),
  })
  const draw = (): void => screen.draw(page.lines(screen.size))
  draw()
  for await (const seen of rounds(options, signal)) {
    if (seen instanceof AirlockError) page.fail(seen.message)
    else page.update(seen)
    draw()
  }
  context.exitCode = interrupts.exitCode
}

/** Prints a table, or a line of JSON, for each round. */
export async function printTop(
  context: Context,
  options: TopOptions & { readonly once: boolean; readonly json: boolean },
): Promise<void> {
  const { terminal } = context
  using interrupts = new Interrupts()
  const rates = options.once ? null : new Rates()
  const print = async (metrics: TenantMetrics): Promise<void> => {
    const sandboxes = sortSandboxes(metrics.sandboxes, options.sort)
    rates?.update(sandboxes)
    if (options.json) return terminal.printJson({ ...metrics, sandboxes }, 'line')
    await printTable(terminal, { ...metrics, sandboxes: [...sandboxes] }, rates)
  }
  if (options.once) await print(await firstLook(options, interrupts))
  else await eachRound(options, { interrupts, note: (text) => terminal.note(text) }, print)
  context.exitCode = interrupts.exitCode
}

async function printTable(terminal: Terminal, metrics: TenantMetrics, rates: Rates | null): Promise<void> {
  const { sandboxes, total, truncated } = metrics
  if (sandboxes.length === 0) return terminal.note(NO_SANDBOXES)
  const time = { text: `${new Date().toLocaleTimeString('en-GB')}   `, style: 'dim' } as const
  const lines = [[time, ...totalLine(total)], ...sandboxLines({ sandboxes, rates }, terminal.width)]
  const text = lines.map((line) => printedLine(terminal, line)).join('\n')
  await terminal.print(rates ? `${text}\n` : text)
  if (truncated) terminal.note('There are more, which the server left out.')
}
