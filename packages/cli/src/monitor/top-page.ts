import type { TenantMetrics } from '@airlock/sdk'
import { formatDuration } from '../text/units.ts'
import { type Line, widthOf } from './line.ts'
import { Rates } from './rates.ts'
import { sandboxLines, sortSandboxes, TOP_SORTS, totalLine, type TopSort } from './top-view.ts'

export const NO_SANDBOXES = 'There are no living sandboxes. Make one with "airlock create".'

/** Above the table: what this is, the totals, a blank. Below it: the keys. */
const AROUND = 4

export interface PageOptions {
  readonly sort: TopSort
  readonly agent: string | undefined
  readonly everyMs: number
}

/** What `airlock top` shows on a terminal, and what its keys change. */
export class TopPage {
  readonly #agent: string | undefined
  readonly #everyMs: number
  readonly #rates = new Rates()
  #sort: TopSort
  #shown: TenantMetrics | undefined
  #problem: string | undefined
  #at = new Date()
  #offset = 0

  constructor({ sort, agent, everyMs }: PageOptions) {
    this.#sort = sort
    this.#agent = agent
    this.#everyMs = everyMs
  }

  update(metrics: TenantMetrics): void {
    this.#rates.update(metrics.sandboxes)
    this.#shown = metrics
    this.#problem = undefined
    this.#at = new Date()
  }

  /** What was shown stays, with why it is old. */
  fail(problem: string): void {
    this.#problem = problem
  }

  /** Whether the key means something here. */
  press(key: string): boolean {
    const step = SCROLLS[key]
    if (key === 's') this.#sort = next(this.#sort)
    else if (step !== undefined) this.#offset = Math.max(0, this.#offset + step)
    return key === 's' || step !== undefined
  }

  lines(size: { readonly columns: number; readonly rows: number }): readonly Line[] {
    const { columns, rows } = size
    const room = Math.max(1, rows - AROUND)
    const shown = this.#shown
    const body = shown
      ? this.#table(shown, { columns, room })
      : [[{ text: 'Asking the server …', style: 'dim' } as const]]
    const head = [this.#title(columns), shown ? totalLine(shown.total) : [], []]
    const keys = `q quits   s sorts by ${next(this.#sort)}   ↑↓ scroll`
    const foot: Line =
      this.#problem === undefined ? [{ text: keys, style: 'dim' }] : [{ text: this.#problem, style: 'red' }]
    const blank = Array.from({ length: Math.max(0, room - body.length) }, (): Line => [])
    return [...[...head, ...body, ...blank].slice(0, rows - 1), foot]
  }

  #title(columns: number): Line {
    const whose = this.#agent === undefined ? (this.#shown?.tenant ?? '') : `agent ${this.#agent}`
    const left: Line = [{ text: 'airlock top', style: 'bold' }, { text: `  ${whose}  by ${this.#sort}` }]
    const time = `${this.#at.toLocaleTimeString('en-GB')}, every ${everyText(this.#everyMs)}`
    const gap = ' '.repeat(Math.max(2, columns - widthOf(left) - time.length))
    return [...left, { text: gap }, { text: time, style: 'dim' }]
  }

  #table(
    metrics: TenantMetrics,
    { columns, room }: { readonly columns: number; readonly room: number },
  ): readonly Line[] {
    if (metrics.sandboxes.length === 0) return [[{ text: NO_SANDBOXES }]]
    const sandboxes = sortSandboxes(metrics.sandboxes, this.#sort)
    const [head = [], ...rows] = sandboxLines({ sandboxes, rates: this.#rates }, columns)
    if (rows.length < room) this.#offset = 0
    if (rows.length < room && !metrics.truncated) return [head, ...rows]
    // The last line says what is not seen.
    const seen = Math.max(0, room - 2)
    this.#offset = Math.min(this.#offset, Math.max(0, rows.length - seen))
    const until = Math.min(rows.length, this.#offset + seen)
    const more = metrics.truncated ? ', and more that the server left out' : ''
    const where = `${this.#offset + 1} to ${until} of ${rows.length}${more}`
    return [head, ...rows.slice(this.#offset, until), [{ text: where, style: 'dim' }]]
  }
}

const PAGE = 10
const SCROLLS: Readonly<Record<string, number>> = {
  '\u001B[A': -1,
  '\u001BOA': -1,
  k: -1,
  '\u001B[B': 1,
  '\u001BOB': 1,
  j: 1,
  '\u001B[5~': -PAGE,
  '\u001B[6~': PAGE,
}

function next(sort: TopSort): TopSort {
  return TOP_SORTS[(TOP_SORTS.indexOf(sort) + 1) % TOP_SORTS.length] ?? sort
}

function everyText(ms: number): string {
  return ms % 1000 === 0 ? formatDuration(ms) : `${ms / 1000}s`
}
