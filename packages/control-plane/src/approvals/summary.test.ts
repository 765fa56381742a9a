import type { Operation, Question } from '@airlock/contract'
import { expect, it } from 'vitest'
import { shownQuestion, summaryOf } from './summary.ts'

const code = (text: string): Question => ({
  point: 'step.run',
  tenant: 't',
  actor: 'key:a',
  role: 'developer',
  agent: 'x',
  sandbox: null,
  operation: { kind: 'code', runtime: 'python', code: text, timeoutMs: 1 },
})

it('shows all of what is asked for, however long, but for what looks like a secret', () => {
  const long = 'x = 1\n'.repeat(100_000)
  const { operation } = shownQuestion(code(`${long}token="abcdefgh"\n${long}`))
  expect(operation).toMatchObject({ code: `${long}token="[redacted]"\n${long}` })
})

it('hides the word after a flag for secrets', () => {
  const argv = ['mysql', '--password', 'hunter2', 'db']
  const operation = { kind: 'command', argv, cwd: '/', env: [], timeoutMs: 1 } as const
  const shown = shownQuestion({ ...code(''), point: 'command.run', operation: { ...operation, argv, env: [] } })
  expect(summaryOf(shown)).toBe("command.run: mysql --password '[redacted]' db")
})

it('of a program inside says which sandbox asks for which action', () => {
  const asked = (payload: Extract<Operation, { kind: 'other' }>['payload']): Question => ({
    ...code(''),
    point: 'sandbox.ask',
    sandbox: 'sbx_1',
    operation: { kind: 'other', payload },
  })
  expect(summaryOf(shownQuestion(asked({ action: 'deploy', detail: { to: 'prod', password: 'x' } })))).toBe(
    'sandbox sbx_1 asks: deploy {"to":"prod","password":"[redacted]"}',
  )
  expect(summaryOf(asked({ action: 'deploy' }))).toBe('sandbox sbx_1 asks: deploy')
})

it('is one line that steers no terminal', () => {
  expect(summaryOf(code('a\u001b[2J\nb\u202e\u0000c'))).toBe('step.run: python: a [2J b c')
  expect(summaryOf(code('é'.repeat(500)))).toHaveLength(200)
})
