import { sanitizeLine } from '../text/sanitize.ts'
import type { Cell } from '../text/table.ts'
import { fitLine, type Line } from './line.ts'

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => Cell
  readonly align?: 'right'
  /** Where a line is too short, columns are left out in this order, the lowest first; without it, never. */
  readonly givesWay?: number
  /** Its texts may be cut to so many characters before any column is left out. */
  readonly narrowest?: number
}

const GAP = 2

/** The title and a line for each row, none longer than the width. */
export function layColumns<T>(columns: readonly Column<T>[], rows: readonly T[], width: number): readonly Line[] {
  const laid = fitWidths(
    columns.map((column) => measure(column, rows)),
    width,
  )
  const head = laid.map(({ column, width: own }, i) =>
    pad({ text: column.title, style: 'dim' }, { column, width: own, isLast: i === laid.length - 1 }),
  )
  const body = rows.map((_, row) =>
    laid.map(({ column, cells, width: own }, i) =>
      pad(cells[row] ?? { text: '' }, { column, width: own, isLast: i === laid.length - 1 }),
    ),
  )
  return [head, ...body].map((line) => fitLine(line.flat(), width))
}

interface Measured<T> {
  readonly column: Column<T>
  readonly cells: readonly Cell[]
  readonly width: number
}

function measure<T>(column: Column<T>, rows: readonly T[]): Measured<T> {
  const cells = rows.map((row) => {
    const cell = column.cell(row)
    return { ...cell, text: sanitizeLine(cell.text) }
  })
  return { column, cells, width: Math.max(column.title.length, ...cells.map(({ text }) => text.length)) }
}

/** Leaves out as few columns as it takes when all are as narrow as they may be, then gives back what is left. */
function fitWidths<T>(all: readonly Measured<T>[], width: number): readonly Measured<T>[] {
  let kept = all
  while (total(kept.map(narrow)) > width) {
    const first = kept.reduce((min, { column }) => Math.min(min, column.givesWay ?? Infinity), Infinity)
    if (first === Infinity) break
    kept = kept.filter(({ column }) => column.givesWay !== first)
  }
  let spare = Math.max(0, width - total(kept.map(narrow)))
  return kept.map((one) => {
    const least = narrow(one).width
    const own = Math.min(one.width, least + spare)
    spare -= own - least
    return { ...one, width: own }
  })
}

function narrow<T>(one: Measured<T>): Measured<T> {
  return { ...one, width: Math.min(one.width, one.column.narrowest ?? Infinity) }
}

function total(kept: readonly { readonly width: number }[]): number {
  return kept.reduce((sum, { width }) => sum + width, 0) + GAP * Math.max(0, kept.length - 1)
}

function pad<T>(
  cell: Cell,
  place: { readonly column: Column<T>; readonly width: number; readonly isLast: boolean },
): Line {
  const text = cutMiddle(cell.text, place.width)
  const missing = ' '.repeat(Math.max(0, place.width - text.length))
  const gap = place.isLast ? '' : ' '.repeat(GAP)
  return place.column.align === 'right'
    ? [{ text: missing }, { ...cell, text }, { text: gap }]
    : [{ ...cell, text }, { text: missing + gap }]
}

/** Ids that were made at the same time begin alike: their ends tell them apart. */
function cutMiddle(text: string, width: number): string {
  if (text.length <= width) return text
  const end = Math.floor((width - 1) / 2)
  return `${text.slice(0, width - 1 - end)}…${text.slice(text.length - end)}`
}
