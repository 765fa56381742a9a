import { sanitizeLine } from '../text/sanitize.ts'
import type { Cell } from '../text/table.ts'
import type { Terminal } from '../text/terminal.ts'

/** One line of the screen in pieces, each with its colour: so it can be cut before it is coloured. */
export type Line = readonly Cell[]

export function widthOf(line: Line): number {
  return line.reduce((sum, { text }) => sum + text.length, 0)
}

/** What fits of it. */
export function fitLine(line: Line, width: number): Line {
  let room = width
  const fitting: Cell[] = []
  for (const cell of line) {
    if (room <= 0) break
    fitting.push({ ...cell, text: cell.text.slice(0, room) })
    room -= cell.text.length
  }
  return fitting
}

export function paintLine(terminal: Terminal, line: Line): string {
  const painted = line.map(({ text, style }) => {
    const clean = sanitizeLine(text)
    return style === undefined ? clean : terminal.style(style, clean)
  })
  return painted.join('')
}

/** For what is printed, not drawn: nothing follows the last character. */
export function printedLine(terminal: Terminal, line: Line): string {
  return paintLine(terminal, fitLine(line, terminal.width)).trimEnd()
}
