import { sanitizeLine } from './sanitize.ts'
import type { Style, Terminal } from './terminal.ts'

export interface Cell {
  readonly text: string
  readonly style?: Style
}

export type Row = readonly (string | Cell)[]

/** Columns as wide as their widest cell. Every cell is shown on one line, whatever the server says it contains. */
export function renderTable(terminal: Terminal, head: readonly string[], rows: readonly Row[]): string {
  const cells = rows.map((row) => row.map(toCell))
  const widths = head.map((title, i) => Math.max(title.length, ...cells.map((row) => row[i]?.text.length ?? 0)))
  const line = (row: readonly Cell[]): string =>
    row
      .map((cell, i) => {
        const padding = i === row.length - 1 ? '' : ' '.repeat((widths[i] ?? 0) - cell.text.length)
        return (cell.style ? terminal.style(cell.style, cell.text) : cell.text) + padding
      })
      .join('  ')
      .trimEnd()
  return [head.map((text): Cell => ({ text, style: 'dim' })), ...cells].map(line).join('\n')
}

/** Names and values, one pair a line. */
export function renderFacts(terminal: Terminal, facts: readonly (readonly [string, string | Cell])[]): string {
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts
    .map(([name, value]) => {
      const cell = toCell(value)
      const text = cell.style ? terminal.style(cell.style, cell.text) : cell.text
      return `${terminal.style('dim', name.padEnd(width))}  ${text}`
    })
    .join('\n')
}

function toCell(value: string | Cell): Cell {
  const cell = typeof value === 'string' ? { text: value } : value
  return { ...cell, text: sanitizeLine(cell.text) }
}
