import { Airlock, type Decision, type Evaluation, type Operation, type RuleInForce } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { Style } from '../text/terminal.ts'
import { renderFacts, renderTable, type Cell, type Row } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

/** What a denial exits with everywhere. */
const DENIED = 4

export function defineGuardian(guardian: Command, context: Context): void {
  addStatus(guardian, context)
  addRules(guardian, context)
  addCheck(guardian, context)
}

function addStatus(guardian: Command, context: Context): void {
  withJson(
    guardian.command('status').description('Show what decides: policies, how many rules, other sources.'),
  ).action(async (options: JsonOption) => {
    const { terminal } = context
    const status = await new Airlock().guardian.status()
    if (options.json === true) return terminal.printJson(status)
    const rules = status.rules.map(({ kind, effect, count }) => `${count} ${kind} ${effect}`)
    const sources = status.sources.map(({ name, isHealthy, problem }) => `${name}: ${healthOf(isHealthy, problem)}`)
    const facts: (readonly [string, string | Cell])[] = [
      ['default', effectCell(status.default)],
      ['rules', rules.join(', ') || 'none'],
      ['sources', sources.join(', ') || 'policies alone'],
    ]
    await terminal.print(renderFacts(terminal, facts))
    await terminal.print('')
    const head = ['POLICY', 'SCOPE', 'VERSION', 'RULES', 'SWITCHES OFF', 'PROBLEM']
    const rows = status.policies.map(({ name, scope, version, rules: count, off, problem }): Row => {
      return [name, scope, `${version}`, `${count}`, off.join(' ') || '-', problem ?? '-']
    })
    await terminal.print(renderTable(terminal, head, rows))
  })
}

function healthOf(isHealthy: boolean | null, problem: string | null): string {
  if (isHealthy === null) return 'not asked yet'
  return isHealthy ? 'answers' : (problem ?? 'does not answer')
}

function addRules(guardian: Command, context: Context): void {
  withJson(guardian.command('rules').description('List the rules that hold, and those that are switched off.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const rules = await new Airlock().guardian.rules()
      if (options.json === true) return terminal.printJson(rules)
      const head = ['RULE', 'KIND', 'EFFECT', 'RISK', 'STATE', 'REASON']
      await terminal.print(renderTable(terminal, head, rules.map(ruleRow)))
    },
  )
}

function ruleRow({ policy, rule, kind, effect, risk, isOn, reason }: RuleInForce): Row {
  const state: Cell = isOn ? { text: 'on' } : { text: 'off', style: 'dim' }
  return [`${policy}/${rule}`, kind, effectCell(effect), risk, state, reason]
}

interface CheckOptions extends JsonOption {
  readonly agent?: string
  readonly sandbox?: string
}

function addCheck(guardian: Command, context: Context): void {
  withJson(guardian.command('check').description('Say what Guardian would make of a command. Nothing runs.'))
    .argument('<command...>', 'a program and its arguments, or one text that a shell would read')
    .option('--agent <agent>', 'as this agent')
    .option('--sandbox <id>', 'in this sandbox')
    .passThroughOptions()
    .action(async (words: readonly string[], options: CheckOptions) => {
      const { agent, sandbox } = options
      const bounds = { cwd: '/workspace', env: [], timeoutMs: 300_000 }
      const operation: Operation = { kind: 'command', argv: argvOf(words), ...bounds }
      const said = await new Airlock().guardian.evaluate({ point: 'command.run', operation, agent, sandbox })
      if (said.decision.effect !== 'allow') context.exitCode = DENIED
      if (options.json === true) return context.terminal.printJson(said)
      await print(context, said)
    })
}

function argvOf(words: readonly string[]): string[] {
  const [first = '', ...rest] = words
  return rest.length === 0 && /\s/.test(first) ? ['/bin/sh', '-c', first] : [...words]
}

async function print({ terminal }: Context, { decision }: Evaluation): Promise<void> {
  const bounds = Object.entries(decision.conditions).map(([name, value]) => `${name} ${String(value)}`)
  const facts: (readonly [string, string | Cell])[] = [
    ['decision', effectCell(decision.effect)],
    ['risk', decision.risk],
    ['conditions', bounds.join(', ') || 'none'],
    ['policies', decision.policyVersion],
  ]
  await terminal.print(renderFacts(terminal, facts))
  if (decision.rules.length === 0) return
  await terminal.print('')
  const rows = decision.rules.map(({ policy, rule, effect, risk, reason }): Row => {
    return [`${policy}/${rule}`, effectCell(effect), risk, reason]
  })
  await terminal.print(renderTable(terminal, ['RULE', 'EFFECT', 'RISK', 'REASON'], rows))
}

const STYLES: Readonly<Record<Decision['effect'], Style>> = { allow: 'green', ask: 'yellow', deny: 'red' }

export function effectCell(effect: Decision['effect']): Cell {
  return { text: effect, style: STYLES[effect] }
}
