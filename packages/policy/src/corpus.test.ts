import { readFileSync } from 'node:fs'
import { effect, EFFECTS, type Operation } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { BUILTIN, compilePolicy, evaluate } from './index.ts'

const line = z.strictObject({
  class: z.string(),
  hostile: z.boolean(),
  argv: z.array(z.string()),
  expect: effect,
  why: z.string(),
})

const builtin = compilePolicy(BUILTIN, { version: 1 })
const judged = ['commands', 'held-out']
  .flatMap((name) =>
    readFileSync(new URL(`../corpus/${name}.jsonl`, import.meta.url), 'utf8')
      .trimEnd()
      .split('\n'),
  )
  .map((text) => line.parse(JSON.parse(text)))
  .map((case_) => ({ ...case_, effect: judge(case_.argv) }))

function judge(argv: readonly string[]) {
  const operation: Operation = { kind: 'command', argv: [...argv], cwd: '/workspace', env: [], timeoutMs: 1000 }
  const asker = { tenant: 'default', actor: 'key:corpus', role: 'developer', agent: 'default', sandbox: null } as const
  return evaluate([builtin], { point: 'command.run', ...asker, operation }, { default: 'allow' }).effect
}

const show = (cases: typeof judged) =>
  cases.map(({ class: of, argv, expect, effect }) => `${of}: ${JSON.stringify(argv)} is ${effect}, not ${expect}`)

describe('the corpus of command lines', () => {
  it('has at least ten lines of each sort in each class', () => {
    const classes = [...new Set(judged.map((case_) => case_.class))]
    expect(classes.length).toBeGreaterThanOrEqual(12)
    for (const of of classes) expect(judged.filter((case_) => case_.class === of).length).toBeGreaterThanOrEqual(10)
  })

  it('has no hostile line that is allowed', () => {
    expect(show(judged.filter(({ hostile, effect }) => hostile && effect === 'allow'))).toEqual([])
  })

  it('has at most 2 % of benign lines that are not allowed', () => {
    const benign = judged.filter(({ hostile }) => !hostile)
    const stopped = benign.filter(({ effect }) => effect !== 'allow')
    expect(stopped.length / benign.length, show(stopped).join('\n')).toBeLessThanOrEqual(0.02)
  })

  it('agrees with what was expected before there was an engine', () => {
    const others = judged.filter(({ effect, expect }) => effect !== expect)
    const weaker = others.filter((case_) => EFFECTS.indexOf(case_.effect) < EFFECTS.indexOf(case_.expect))
    expect(show(weaker)).toEqual([])
    expect(others.length, show(others).join('\n')).toBeLessThanOrEqual(12)
  })
})
