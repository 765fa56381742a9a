import { readFileSync } from 'node:fs'
import { BUILTIN, BUILTIN_VERSION, compilePolicy, evaluate } from '@airlock/policy'
import type { Samples } from './race.ts'

const CORPUS = new URL('../../packages/policy/corpus/commands.jsonl', import.meta.url)
const MICROSECONDS = 1000

/** Decisions of the policy engine over its corpus, hostile and benign lines as they come; the first rounds warm it up. */
export function measureDecisions({ rounds, samples }: { readonly rounds: number; readonly samples: Samples }): void {
  const policies = [compilePolicy(BUILTIN, { version: BUILTIN_VERSION })]
  const questions = readFileSync(CORPUS, 'utf8').trimEnd().split('\n').map(toQuestion)
  for (let round = -5; round < rounds; round++)
    for (const question of questions) {
      const before = performance.now()
      evaluate(policies, question, { default: 'allow' })
      const took = (performance.now() - before) * MICROSECONDS
      if (round >= 0) samples.add('decisionUs', 'Airlock', took)
    }
}

function toQuestion(line: string): Parameters<typeof evaluate>[1] {
  const { argv } = JSON.parse(line) as { argv: string[] }
  return {
    point: 'command.run',
    tenant: 'default',
    actor: 'key:bench',
    role: 'developer',
    agent: 'default',
    sandbox: null,
    operation: { kind: 'command', argv, cwd: '/workspace', env: [], timeoutMs: 300_000 },
  }
}
