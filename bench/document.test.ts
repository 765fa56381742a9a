import { expect, it } from 'vitest'
import { judge } from './budgets.ts'
import { renderReport, replaceGenerated } from './document.ts'
import type { Report, Result } from './report.ts'

const only = (metric: Result['metric'], contender: string, p50: number): Result => ({
  metric,
  contender,
  summary: { count: 3, p50, p95: p50 * 2, min: p50 / 2 },
})

const report: Report = {
  date: '2030-01-02T03:04:05.000Z',
  isQuick: false,
  machine: {
    cpu: 'A processor',
    cpus: 2,
    memoryGb: 8,
    kernel: '6.1',
    arch: 'x64',
    cgroups: 'v2',
    fileSystem: 'ext4',
    syncMs: 0.25,
    load: 0.1,
    nice: 0,
    node: '24.0.0',
  },
  contenders: [
    { name: 'Airlock', about: '' },
    { name: 'bare process', about: 'spawn' },
  ],
  skipped: [{ name: 'runsc', reason: 'it is not installed' }],
  results: [
    only('coldResult', 'Airlock', 200),
    only('command', 'Airlock', 8),
    only('command', 'bare process', 2),
    only('recordsPerSecond', 'Airlock', 12_000),
  ],
  trace: [{ step: 'create.admitted', process: 'control-plane', deltaMs: 1.25, atMs: 1.25 }],
}

it('says which budget is met and leaves out what was not measured', () => {
  expect(judge(report).map(({ measured, isMet }) => [measured, isMet])).toEqual([
    ['200 ms', false],
    ['6 ms', true],
    ['12,000', true],
  ])
})

it('shows every contender with its ratio, and the steps of the trace', () => {
  const text = renderReport(report)
  expect(text).toContain('| a command in a live sandbox, ms | 8 (16) | 2 (4), 0.25 × |')
  expect(text).toContain('| create → first result of a fresh sandbox, ms | 200 (400) |  |')
  expect(text).toContain('| create.admitted | control-plane | 1.3 | 1.3 |')
  expect(text).toContain('Not measured: runsc, it is not installed.')
})

it('replaces only what is between the markers, and refuses a document without them', () => {
  const document = 'a\n<!-- bench: begin, written by npm run bench -->\nold\n<!-- bench: end -->\nb\n'
  const once = replaceGenerated(document, 'new\n')
  expect(once).toBe('a\n<!-- bench: begin, written by npm run bench -->\n\nnew\n\n<!-- bench: end -->\nb\n')
  expect(replaceGenerated(once, 'new\n')).toBe(once)
  expect(() => replaceGenerated('none', 'new')).toThrow('no part between')
})
