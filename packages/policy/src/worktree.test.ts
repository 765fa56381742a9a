import { policyDocument, type Question } from '@airlock/contract'
import { expect, it } from 'vitest'
import { compilePolicy } from './compile.ts'
import { evaluate } from './evaluate.ts'

type Found = Extract<Question['operation'], { kind: 'worktree' }>['findings']

function decide(findings: Found, rules: readonly object[] = []): string {
  const document = policyDocument.parse({ name: 'p', rules })
  const operation = {
    kind: 'worktree',
    source: '/srv/repo',
    format: 'branch',
    branch: 'x',
    seal: '',
    changes: 1,
    findings,
  } as const
  const who = {
    point: 'worktree.export',
    tenant: 't',
    actor: 'a',
    role: 'developer',
    agent: 'g',
    sandbox: 's',
  } as const
  return evaluate([compilePolicy(document, { version: 1 })], { ...who, operation }, { default: 'allow' }).effect
}

const rule = (effect: string, match: object) => ({
  id: 'r',
  kind: 'worktree',
  effect,
  risk: 'low',
  reason: 'Why.',
  match,
})
const ci = { kind: 'ci', path: '.github/workflows/x.yml', detail: 'is changed' } as const
const secret = { kind: 'secret', path: 'a', detail: 'GitHub token' } as const

it('work without a finding leaves, and work with one asks', () => {
  expect(decide([])).toBe('allow')
  expect(decide([ci])).toBe('ask')
})

it('a rule that allows must speak of every finding', () => {
  expect(decide([ci], [rule('allow', { findings: ['ci'] })])).toBe('allow')
  expect(decide([ci, secret], [rule('allow', { findings: ['ci'] })])).toBe('ask')
  expect(decide([ci], [rule('allow', { paths: ['/.github/**'] })])).toBe('allow')
  expect(decide([ci], [rule('allow', { sources: ['/srv/**'] })])).toBe('ask')
})

it('a rule that denies holds for any finding, and without one for all work', () => {
  expect(decide([ci, secret], [rule('deny', { findings: ['secret'] })])).toBe('deny')
  expect(decide([ci], [rule('deny', { findings: ['secret'] })])).toBe('ask')
  expect(decide([], [rule('deny', { formats: ['branch'] })])).toBe('deny')
  expect(decide([], [rule('deny', { formats: ['patch'] })])).toBe('allow')
})

it('a rule about points alone allows no finding', () => {
  const points = { id: 'r', kind: 'operation', effect: 'allow', risk: 'low', reason: 'Why.', match: { points: ['*'] } }
  expect(decide([secret], [points])).toBe('ask')
})
