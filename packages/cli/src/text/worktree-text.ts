import type { WorktreeDiff } from '@airlock/sdk'
import { sanitizeLine } from './sanitize.ts'
import type { Style, Terminal } from './terminal.ts'
import { formatBytes } from './units.ts'

const STYLES: Readonly<Record<WorktreeDiff['changes'][number]['status'], Style>> = {
  added: 'green',
  changed: 'yellow',
  deleted: 'red',
  renamed: 'yellow',
  mode: 'yellow',
  type: 'red',
}

/** What was changed, one file a line, and what the gate found. Names are shown escaped. */
export function renderDiff(terminal: Pick<Terminal, 'style'>, diff: WorktreeDiff): string {
  const lines = diff.changes.map((change) => {
    const { status, path, from, bytes, binary, newMode } = change
    const facts = [
      ...(bytes === null ? [] : [formatBytes(bytes)]),
      ...(binary ? ['binary'] : []),
      ...(newMode === '100755' ? ['executable'] : []),
      ...(newMode === '120000' ? ['link'] : []),
    ]
    const name = from === null ? sanitizeLine(path) : `${sanitizeLine(from)} → ${sanitizeLine(path)}`
    return `${terminal.style(STYLES[status], status.padEnd(8))} ${name}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`
  })
  return [...lines, ...summaryOf(terminal, diff)].join('\n')
}

function summaryOf(terminal: Pick<Terminal, 'style'>, diff: WorktreeDiff): readonly string[] {
  const { changes, ignored, leftOut, commits, commitsComplete, findings, base } = diff
  const made = commitsComplete ? `${commits.length}` : `at least ${commits.length}`
  const facts = [
    `${changes.length} changed ${changes.length === 1 ? 'file' : 'files'} since ${base.slice(0, 12)}`,
    `${made} commits made inside`,
    ...(ignored > 0 ? [`${ignored} ignored by .gitignore`] : []),
    ...(leftOut.length > 0 ? [`${leftOut.length} left out`] : []),
  ]
  return [
    facts.join(', '),
    ...findings.map(({ kind, path, line, detail }) => {
      const place = path === '' ? '' : ` ${sanitizeLine(path)}${line === null ? '' : `:${line}`}`
      return `${terminal.style('red', 'finding')}  ${kind}${place}: ${sanitizeLine(detail)}`
    }),
  ]
}

/** A patch as a terminal shows it, without anything in it that a terminal obeys. */
export function renderPatch(terminal: Terminal, patch: Uint8Array): string {
  return new TextDecoder()
    .decode(patch)
    .split('\n')
    .map((line) => {
      const text = sanitizeLine(line)
      if (line.startsWith('+')) return terminal.style('green', text)
      if (line.startsWith('-')) return terminal.style('red', text)
      return line.startsWith('@@') || line.startsWith('diff ') ? terminal.style('cyan', text) : text
    })
    .join('\n')
}
