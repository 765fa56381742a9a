import type { Row } from './judge.ts'
import type { SoakReport } from './soak.ts'

/** A report in Markdown. */
export function renderReport(report: SoakReport): string {
  const { seed, sandboxes, minutes, rounds, plan, tiers, done, refused, evidence, findings, ok } = report
  const parts = [
    `Seed ${seed}, ${sandboxes} sandboxes at once, ${minutes} minutes and a calm stretch: ${rounds} rounds (plan ${plan}), ${tiers.join(' and ')}.`,
    `Answered as it should be: ${countsOf(done)}.`,
    `Refused, with a reason: ${countsOf(refused)}.`,
    table(report.rows),
    `The evidence ${evidence}.`,
    ...findings.map(({ round, lane, during, what }) => `- round ${round}, lane ${lane ?? '–'}, ${during}: ${what}`),
    ok ? 'Nothing leaked, and every answer is explained.' : `**Not in order**: repeat it with --seed ${seed}.`,
  ]
  return parts.join('\n\n')
}

function countsOf(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).map(([name, count]) => `${name} ${count.toLocaleString('en')}`)
  return words.length === 0 ? 'nothing' : words.join(', ')
}

function table(rows: readonly Row[]): string {
  const lines = rows.map(({ what, before, after, allowed, verdict }) => {
    const shown = verdict === 'leak' ? '**leak**' : verdict
    return `| ${what} | ${before ?? ''} | ${after ?? ''} | ${allowed} | ${shown} |`
  })
  return ['| what | before | after | allowed for | |', '|---|---|---|---|---|', ...lines].join('\n')
}
