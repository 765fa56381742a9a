import {
  AirlockError,
  type Effect,
  type Operation,
  type PolicyDocument,
  type PolicyRule,
  type RuleExample,
} from '@airlock/contract'
import { PatternError } from './match/pattern.ts'
import { readOperation } from './read-operation.ts'
import { ASK, compileRule, type CompiledRule } from './rules.ts'

/** A document that is checked and ready to be asked. */
export interface CompiledPolicy {
  readonly name: string
  readonly version: number
  /** `name@version` */
  readonly label: string
  readonly default: Effect | undefined
  readonly off: ReadonlySet<string>
  readonly rules: readonly CompiledRule[]
  /** Rules about single commands, by the program that they name, and those that name none or a wildcard. */
  readonly byProgram: ReadonlyMap<string, readonly CompiledRule[]>
  readonly ofAnyProgram: readonly CompiledRule[]
  /** Rules about the code in it. */
  readonly ofCode: readonly CompiledRule[]
  /** Rules about the operation as a whole. */
  readonly ofOperation: readonly CompiledRule[]
}

/** Throws `policy_invalid` with the rule and the reason: a bad pattern, an example that does not hold, an id that is there twice. */
export function compilePolicy(document: PolicyDocument, { version }: { readonly version: number }): CompiledPolicy {
  requireUnique(document)
  const compiled = document.rules.map((rule) => compileChecked(document.name, rule))
  const rules = compiled.filter(({ rule }) => rule.enabled)
  const ofCommand = rules.filter(({ unit }) => unit === 'invocation')
  return {
    name: document.name,
    version,
    label: `${document.name}@${version}`,
    default: document.default,
    off: new Set(document.off),
    rules,
    byProgram: indexByProgram(ofCommand),
    ofAnyProgram: ofCommand.filter(({ programs }) => programs === undefined),
    ofCode: rules.filter(({ unit }) => unit === 'code'),
    ofOperation: rules.filter(({ unit }) => unit === 'operation'),
  }
}

function requireUnique({ name, rules }: PolicyDocument): void {
  const seen = new Set<string>()
  for (const { id } of rules) {
    if (seen.has(id)) throw invalid(name, id, 'There are two rules with this id.')
    seen.add(id)
  }
}

function compileChecked(policy: string, rule: PolicyRule): CompiledRule {
  const compiled = tryCompile(policy, rule)
  if ('pattern' in rule.match && rule.examples.match.length === 0)
    throw invalid(policy, rule.id, 'A rule with a pattern needs an example that it matches.')
  for (const example of rule.examples.match)
    if (!holdsFor(compiled, example)) throw invalid(policy, rule.id, `It does not match its example ${show(example)}.`)
  for (const example of rule.examples.notMatch)
    if (holdsFor(compiled, example)) throw invalid(policy, rule.id, `It matches ${show(example)}, which it must not.`)
  return compiled
}

function tryCompile(policy: string, rule: PolicyRule): CompiledRule {
  try {
    return compileRule(policy, rule)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw invalid(policy, rule.id, `Its pattern ${error.message}.`)
  }
}

function holdsFor(compiled: CompiledRule, example: RuleExample): boolean {
  const operation = toOperation(compiled.rule, example)
  const reading = readOperation(operation)
  if (compiled.unit === 'invocation') return reading.invocations.some((invocation) => compiled.ofInvocation(invocation))
  if (compiled.unit === 'code') return reading.codes.some((code) => compiled.ofCode(code))
  return compiled.ofOperation(operation, { point: pointOf(compiled.rule, example) })
}

/** A rule about actions is about one point, and its texts are actions. */
function pointOf(rule: PolicyRule, example: RuleExample): string {
  if (namesActions(rule)) return ASK
  return typeof example === 'string' ? example : ''
}

function namesActions(rule: PolicyRule): boolean {
  return rule.kind === 'operation' && rule.match.actions !== undefined
}

function toOperation(rule: PolicyRule, example: RuleExample): Operation {
  if (typeof example === 'string') return ofText(rule, example)
  if (!isArgv(example)) return example
  return { kind: 'command', argv: [...example], cwd: '/workspace', env: [], timeoutMs: 0 }
}

function isArgv(example: Exclude<RuleExample, string>): example is string[] {
  return Array.isArray(example)
}

function ofText(rule: PolicyRule, text: string): Operation {
  if (rule.kind === 'command')
    return { kind: 'command', argv: ['/bin/sh', '-c', text], cwd: '/workspace', env: [], timeoutMs: 0 }
  if (rule.kind === 'model') return { kind: 'model', model: text }
  if (rule.kind === 'artifact') {
    const action = rule.match.actions?.[0] ?? 'collect'
    return { kind: 'artifact', action, name: text, bytes: 0, count: 1 }
  }
  if (rule.kind === 'tool') return { kind: 'tool', tool: text }
  if (namesActions(rule)) return { kind: 'other', payload: { action: text } }
  if (rule.kind === 'network') return ofAddress(text)
  return ofPlace(rule, text)
}

function ofAddress(text: string): Operation {
  const [host = '', port = '443'] = text.split(':')
  return { kind: 'network', host, port: Number(port) }
}

function ofPlace(rule: PolicyRule, text: string): Operation {
  if (rule.kind === 'code')
    return { kind: 'code', runtime: rule.match.runtimes?.[0] ?? 'python', code: text, timeoutMs: 0 }
  if (rule.kind === 'file') return { kind: 'file', action: rule.match.actions?.[0] ?? 'read', path: text }
  if (rule.kind === 'mount') return { kind: 'mount', path: text, mode: rule.match.modes?.[0] ?? 'ro' }
  return { kind: 'other', payload: {} }
}

function indexByProgram(rules: readonly CompiledRule[]): ReadonlyMap<string, readonly CompiledRule[]> {
  const index = new Map<string, CompiledRule[]>()
  for (const rule of rules)
    for (const program of rule.programs ?? []) index.set(program, [...(index.get(program) ?? []), rule])
  return index
}

function show(example: RuleExample): string {
  return JSON.stringify(example).slice(0, 200)
}

function invalid(policy: string, rule: string, reason: string): AirlockError {
  return new AirlockError('policy_invalid', `Rule ${policy}/${rule}: ${reason}`)
}
