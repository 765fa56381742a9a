import { readFileSync } from 'node:fs'
import { policyDocument, type PolicyDocumentInput } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { compilePolicy } from './compile.ts'

type RuleInput = PolicyDocumentInput['rules'][number]

const compile = (...rules: RuleInput[]) => compilePolicy(policyDocument.parse({ name: 'house', rules }), { version: 7 })
const refuse = (message: string, ...rules: RuleInput[]) =>
  expect(() => compile(...rules)).toThrow(expect.objectContaining({ code: 'policy_invalid', message }))

const rule = {
  id: 'no-deploys',
  kind: 'command',
  effect: 'deny',
  risk: 'high',
  reason: 'Deploys are made elsewhere.',
  match: { programs: ['kubectl'] },
} as const satisfies RuleInput

describe('a policy', () => {
  it('is compiled with its version', () => {
    expect(compile(rule)).toMatchObject({ name: 'house', version: 7, label: 'house@7' })
  })

  it('has each id once', () => {
    refuse('Rule house/no-deploys: There are two rules with this id.', rule, rule)
  })

  it('is refused when an example is not matched', () => {
    refuse('Rule house/no-deploys: It does not match its example "helm upgrade".', {
      ...rule,
      examples: { match: ['helm upgrade'] },
    })
  })

  it('is refused when it matches what it must not', () => {
    refuse('Rule house/no-deploys: It matches ["kubectl","get"], which it must not.', {
      ...rule,
      examples: { notMatch: [['kubectl', 'get']] },
    })
  })

  it('is refused when a pattern could run away, or is none', () => {
    const examples = { match: ['aab'] }
    refuse('Rule house/no-deploys: Its pattern repeats a group or a place: it could run away.', {
      ...rule,
      match: { pattern: '(a+)+b' },
      examples,
    })
    refuse('Rule house/no-deploys: Its pattern has a "(" too many.', { ...rule, match: { pattern: '(a' }, examples })
  })

  it('needs an example for a pattern', () => {
    refuse('Rule house/no-deploys: A rule with a pattern needs an example that it matches.', {
      ...rule,
      match: { pattern: 'kubectl (apply|delete)' },
    })
  })

  it('checks rules that are not enabled, and does not ask them', () => {
    refuse('Rule house/no-deploys: It does not match its example "ls".', {
      ...rule,
      enabled: false,
      examples: { match: ['ls'] },
    })
    expect(compile({ ...rule, enabled: false }).rules).toEqual([])
  })

  it('checks examples of every kind', () => {
    const shared = { effect: 'deny', risk: 'low', reason: 'x' } as const
    const compiled = compile(
      {
        ...shared,
        id: 'a',
        kind: 'file',
        match: { paths: ['/etc/**'] },
        examples: { match: ['/etc/x'], notMatch: ['/x'] },
      },
      { ...shared, id: 'b', kind: 'mount', match: { modes: ['rw'] }, examples: { match: ['/srv'] } },
      {
        ...shared,
        id: 'c',
        kind: 'network',
        match: { hosts: ['*.example'], ports: [443] },
        examples: { match: ['A.EXAMPLE:443'], notMatch: ['a.example:80'] },
      },
      {
        ...shared,
        id: 'd',
        kind: 'model',
        match: { models: ['gpt-*'] },
        examples: { match: ['gpt-5'], notMatch: ['o1'] },
      },
      {
        ...shared,
        id: 'e',
        kind: 'operation',
        match: { points: ['file.*'] },
        examples: { match: ['file.read'], notMatch: ['step.run'] },
      },
      {
        ...shared,
        id: 'asks',
        kind: 'operation',
        match: { actions: ['deploy.*'] },
        examples: { match: ['deploy.staging'], notMatch: ['release', { kind: 'other', payload: {} }] },
      },
      {
        ...shared,
        id: 'f',
        kind: 'code',
        match: { runtimes: ['node'], calls: ['eval'] },
        examples: { match: ['eval("1")'], notMatch: ['x("1")'] },
      },
      {
        ...shared,
        id: 'g',
        kind: 'quota',
        match: { over: { timeoutMs: 5 } },
        examples: { match: [{ kind: 'code', runtime: 'node', code: '', timeoutMs: 6 }], notMatch: [['ls']] },
      },
    )
    expect(compiled.rules).toHaveLength(8)
  })

  it('is accepted as the documentation shows one', () => {
    const page = readFileSync(new URL('../../../docs/guardian.md', import.meta.url), 'utf8')
    const [, json = ''] = /```json\n([^]*?)```/u.exec(page) ?? []
    expect(compilePolicy(policyDocument.parse(JSON.parse(json)), { version: 1 }).rules).toHaveLength(2)
  })
})
