import type { GrantMode, MatchedRule, Operation, Point, PolicyRule, Question } from '@airlock/contract'
import { compileGlob, compileGlobs, type GlobList, hasWildcard, type Matcher } from './match/glob.ts'
import { compilePattern } from './match/pattern.ts'
import type { Call, CodeText, Invocation } from './reading.ts'

/** The point at which programs in sandboxes ask. */
export const ASK: Point = 'sandbox.ask'
/** Points with an action: a run has the name of its agent program. */
const NAMED: ReadonlySet<string> = new Set<Point>([ASK, 'run.submit'])

/** A rule that can be asked: about the operation, about each program it would start, or about code in it. */
export interface CompiledRule {
  readonly rule: PolicyRule
  readonly matched: MatchedRule
  /** `policy/rule` */
  readonly key: string
  readonly unit: 'operation' | 'invocation' | 'code'
  /** It names where a sandbox reaches out to, or what a program inside asks for. */
  readonly namesOutward: boolean
  /** The programs it is about, when it names them. */
  readonly programs: readonly string[] | undefined
  readonly holdsFor: (question: Question) => boolean
  readonly ofOperation: (operation: Operation, about: { readonly point: string }) => boolean
  readonly ofInvocation: (invocation: Invocation) => boolean
  readonly ofCode: (code: CodeText) => boolean
}

type CommandMatch = Extract<PolicyRule, { kind: 'command' }>['match']
type CodeMatch = Extract<PolicyRule, { kind: 'code' }>['match']

/** Throws PatternError. */
export function compileRule(policy: string, rule: PolicyRule): CompiledRule {
  return {
    rule,
    matched: { policy, rule: rule.id, effect: rule.effect, risk: rule.risk, reason: rule.reason },
    key: `${policy}/${rule.id}`,
    unit: rule.kind === 'command' ? 'invocation' : rule.kind === 'code' ? 'code' : 'operation',
    namesOutward: isNamingOutward(rule),
    programs: rule.kind === 'command' ? compileGlobs(rule.match.programs ?? ['*'], 'text').literals : undefined,
    holdsFor: compileWhen(rule.when),
    ofOperation: compileOperation(rule),
    ofInvocation: rule.kind === 'command' ? compileCommand(rule.match) : never,
    ofCode: rule.kind === 'code' ? compileCode(rule.match) : never,
  }
}

const never = () => false

function isNamingOutward(rule: PolicyRule): boolean {
  if (rule.kind === 'operation') return rule.match.actions !== undefined
  return rule.kind === 'network' || rule.kind === 'model' || rule.kind === 'tool' || rule.kind === 'worktree'
}

function compileWhen(when: PolicyRule['when']): (question: Question) => boolean {
  if (when === undefined) return () => true
  const points = textMatcher(when.points)
  const tenants = textMatcher(when.tenants)
  const actors = textMatcher(when.actors)
  const agents = textMatcher(when.agents)
  const sandboxes = textMatcher(when.sandboxes)
  const isPlace = ({ agent, sandbox, ephemeral = false }: Question) =>
    (when.agents === undefined || agents(agent ?? '')) &&
    (when.sandboxes === undefined || sandboxes(sandbox ?? '')) &&
    (when.ephemeral === undefined || when.ephemeral === ephemeral)
  return (question) =>
    points(question.point) &&
    tenants(question.tenant) &&
    actors(question.actor) &&
    (when.roles === undefined || when.roles.includes(question.role)) &&
    isPlace(question)
}

type Test = (invocation: Invocation) => boolean

/** Everything that is named must hold, of the same command. */
function compileCommand(match: CommandMatch): Test {
  const tests: (Test | undefined)[] = [
    about(match.programs, (globs) => (of) => globs.matches(of.program)),
    about(match.subcommands, (globs) => (of) => of.subcommands.some(globs.matches)),
    about(match.flags, (globs) => (of) => of.flags.some(globs.matches)),
    about(match.withoutFlags, (globs) => (of) => !of.flags.some(globs.matches)),
    about(match.arguments, (globs) => (of) => of.shown.some(globs.matches)),
    about(match.withoutArguments, (globs) => (of) => !of.shown.some(globs.matches)),
    about(match.assigns, (globs) => (of) => of.assigns.some(globs.matches)),
    about(match.runsOutputOf, (globs) => (of) => of.runsOutputOf.some(globs.matches)),
    about(match.inputFrom, (globs) => (of) => of.inputFrom.some(globs.matches)),
    match.traits === undefined ? undefined : (of) => of.traits.some((trait) => match.traits?.includes(trait) === true),
    ofPaths(match.paths, (of) => of.paths),
    ofPaths(match.writes, (of) => of.writes),
    compileText(match.pattern, (of: Invocation) => of.text),
  ]
  const asked = tests.filter((test) => test !== undefined)
  return (invocation) => asked.every((test) => test(invocation))
}

function about(globs: readonly string[] | undefined, test: (list: GlobList) => Test): Test | undefined {
  return globs === undefined ? undefined : test(compileGlobs(globs, 'text'))
}

function compileText<T>(pattern: string | undefined, textOf: (of: T) => string): ((of: T) => boolean) | undefined {
  if (pattern === undefined) return undefined
  const compiled = compilePattern(pattern)
  return (of) => compiled.matches(textOf(of))
}

function ofPaths<T>(
  globs: readonly string[] | undefined,
  pathsOf: (of: T) => readonly string[],
): ((of: T) => boolean) | undefined {
  if (globs === undefined) return undefined
  const list = compileGlobs(globs, 'path')
  const stems = [...new Set(list.stems)].filter((stem) => stem.length > 1 && list.matches(stem))
  return (of) => pathsOf(of).some((path) => list.matches(path) || touches(stems, path))
}

const MAX_WILDCARDS = 16

/** A path of a command may itself be a glob: then it touches what it would expand to. */
function touches(stems: readonly string[], path: string): boolean {
  if (!path.startsWith('/') || !hasWildcard(path) || path.length > 256) return false
  const begin = path.slice(0, path.search(/[*?[]/u))
  const possible = stems.filter((stem) => stem.startsWith(begin))
  if (possible.length === 0) return false
  // Nobody writes so many for a good reason, and trying them costs much.
  if ((path.match(/[*?[]/gu)?.length ?? 0) > MAX_WILDCARDS) return true
  const expands: Matcher = compileGlob(path, 'path')
  return possible.some(expands)
}

function compileCode(match: CodeMatch): (code: CodeText) => boolean {
  const runtimes = textMatcher(match.runtimes)
  const inText = compileText(match.pattern, (code: CodeText) => code.code)
  const ofCall = compileCall(match)
  return (code) =>
    runtimes(code.runtime) &&
    (inText?.(code) ?? true) &&
    (ofCall === undefined || code.calls.some((call) => ofCall(call)))
}

function compileCall(match: CodeMatch): ((call: Call) => boolean) | undefined {
  const tests: (((call: Call) => boolean) | undefined)[] = [
    match.calls === undefined ? undefined : byName(match.calls),
    match.arguments === undefined ? undefined : anyOf(match.arguments, (call) => call.strings),
    match.within === undefined ? undefined : anyOf(match.within, (call) => call.within.flatMap(namesOf)),
    ofPaths(match.paths, (call: Call) => call.strings),
  ]
  const asked = tests.filter((test) => test !== undefined)
  return asked.length === 0 ? undefined : (call) => asked.every((test) => test(call))
}

function byName(globs: readonly string[]): (call: Call) => boolean {
  const list = compileGlobs(globs, 'text')
  return (call) => namesOf(call.name).some(list.matches)
}

/** `os.system`, and `system`. */
function namesOf(name: string): readonly string[] {
  const dot = name.lastIndexOf('.')
  return dot < 0 ? [name] : [name, name.slice(dot + 1)]
}

function anyOf(globs: readonly string[], textsOf: (call: Call) => readonly string[]): (call: Call) => boolean {
  const list = compileGlobs(globs, 'text')
  return (call) => textsOf(call).some(list.matches)
}

function compileOperation(rule: PolicyRule): CompiledRule['ofOperation'] {
  if (rule.kind === 'operation') {
    const points = textMatcher(rule.match.points)
    if (rule.match.actions === undefined) return (_operation, { point }) => points(point)
    const isAction = textMatcher(rule.match.actions)
    return (operation, { point }) => NAMED.has(point) && points(point) && isAction(actionOf(operation))
  }
  const test = compileKind(rule)
  return (operation) => test(operation)
}

function actionOf(operation: Operation): string {
  const action = operation.kind === 'other' ? operation.payload['action'] : undefined
  return typeof action === 'string' ? action : ''
}

function compileKind(rule: PolicyRule): (operation: Operation) => boolean {
  if (rule.kind === 'file') return ofFile(rule.match)
  if (rule.kind === 'mount') return ofMount(rule.match)
  if (rule.kind === 'quota') return ofQuota(rule.match.over)
  if (rule.kind === 'tier') return ofTier(rule.match)
  if (rule.kind === 'worktree') return ofWorktree(rule)
  if (rule.kind === 'model') {
    const models = textMatcher(rule.match.models)
    return (operation) => operation.kind === 'model' && models(operation.model)
  }
  if (rule.kind === 'artifact') return ofArtifact(rule.match)
  if (rule.kind === 'tool') {
    const tools = textMatcher(rule.match.tools)
    return (operation) => operation.kind === 'tool' && tools(operation.tool)
  }
  return rule.kind === 'network' ? ofNetwork(rule) : never
}

type Network = Extract<Operation, { kind: 'network' }>

/**
 * Fails closed: a rule that denies is about all that it does not exclude. One that does not deny is about named hosts alone, about
 * an address only when it names exactly that, and about raw bytes only when it says so.
 */
function ofNetwork({ effect, match }: Extract<PolicyRule, { kind: 'network' }>): (operation: Operation) => boolean {
  const { ports } = match
  const hosts = match.hosts?.map((host) => host.toLowerCase())
  const isHost = textMatcher(hosts)
  const traffic = match.traffic ?? (effect === 'deny' ? undefined : ['tls', 'http'])
  const isNamed = ({ host }: Network) =>
    effect === 'deny' || (hosts !== undefined && (!isAddress(host) || hosts.includes(host.toLowerCase())))
  return (operation) =>
    operation.kind === 'network' &&
    isHost(operation.host.toLowerCase()) &&
    isNamed(operation) &&
    (ports?.includes(operation.port) ?? true) &&
    (traffic?.includes(operation.traffic ?? 'tls') ?? true)
}

/** In the spelling of the door: IPv4 with four numbers, IPv6 without brackets. No name has a colon or ends with a number. */
function isAddress(host: string): boolean {
  return host.includes(':') || /(?:^|\.)\d+$/.test(host)
}

/** Fails closed: a rule that allows must speak of every finding, one that does not holds for any. Without findings it is about all work. */
function ofWorktree({ effect, match }: Extract<PolicyRule, { kind: 'worktree' }>): (operation: Operation) => boolean {
  const isKind = textMatcher(match.findings)
  const isPath = match.paths === undefined ? () => true : compileGlobs(match.paths, 'path').matches
  const isSource = match.sources === undefined ? () => true : compileGlobs(match.sources, 'path').matches
  const namesFindings = match.findings !== undefined || match.paths !== undefined
  return (operation) => {
    if (operation.kind !== 'worktree' || !isSource(operation.source)) return false
    if (match.formats?.includes(operation.format) === false) return false
    const { findings } = operation
    const fits = (one: (typeof findings)[number]) => isKind(one.kind) && isPath(`/${one.path}`)
    if (effect === 'allow') return findings.length === 0 ? !namesFindings : namesFindings && findings.every(fits)
    return namesFindings ? findings.some(fits) : true
  }
}

function ofFile({ actions, paths }: Extract<PolicyRule, { kind: 'file' }>['match']): (operation: Operation) => boolean {
  const isPath = paths === undefined ? () => true : compileGlobs(paths, 'path').matches
  return (operation) =>
    operation.kind === 'file' &&
    (actions?.includes(operation.action) ?? true) &&
    (isPath(operation.path) || (operation.to !== undefined && isPath(operation.to)))
}

/** A mount by itself, and each one of a sandbox. */
function ofMount({ paths, modes }: Extract<PolicyRule, { kind: 'mount' }>['match']): (operation: Operation) => boolean {
  const isPath = paths === undefined ? () => true : compileGlobs(paths, 'path').matches
  const isMeant = (mount: { path: string; mode: GrantMode }) =>
    isPath(mount.path) && (modes?.includes(mount.mode) ?? true)
  return (operation) =>
    operation.kind === 'mount' ? isMeant(operation) : operation.kind === 'sandbox' && operation.mounts.some(isMeant)
}

function ofArtifact(match: Extract<PolicyRule, { kind: 'artifact' }>['match']): (operation: Operation) => boolean {
  const { actions, names, over } = match
  const isName = textMatcher(names)
  return (operation) =>
    operation.kind === 'artifact' &&
    (actions?.includes(operation.action) ?? true) &&
    isName(operation.name) &&
    (over === undefined || isOver(operation.bytes, over.bytes) || isOver(operation.count, over.count))
}

type Over = Extract<PolicyRule, { kind: 'quota' }>['match']['over']

function ofQuota(over: Over): (operation: Operation) => boolean {
  const { lifetimeMs, timeoutMs, cpuTimeMs, ...limits } = over
  const bounds = Object.entries(limits)
  return (operation) => {
    if (operation.kind === 'code') return isOver(operation.timeoutMs, timeoutMs)
    if (operation.kind === 'command')
      return isOver(operation.timeoutMs, timeoutMs) || isOver(operation.cpuTimeMs ?? null, cpuTimeMs)
    if (operation.kind !== 'sandbox') return false
    const asked: Readonly<Record<string, number | null>> = operation.limits
    return (
      isOver(operation.lifetimeMs, lifetimeMs) || bounds.some(([name, bound]) => isOver(asked[name] ?? null, bound))
    )
  }
}

/** No cap is more than any bound. */
function isOver(measured: number | null, bound: number | undefined): boolean {
  return bound !== undefined && (measured === null || measured > bound)
}

function ofTier(match: Extract<PolicyRule, { kind: 'tier' }>['match']): (operation: Operation) => boolean {
  const templates = textMatcher(match.templates)
  const labels = Object.entries(match.labels ?? {}).map(([name, globs]) => ({ name, isValue: textMatcher(globs) }))
  return (operation) =>
    operation.kind === 'sandbox' &&
    templates(operation.template) &&
    (match.tiers?.includes(operation.tier) ?? true) &&
    labels.every(({ name, isValue }) => {
      const value = operation.labels[name]
      return value !== undefined && isValue(value)
    })
}

function textMatcher(globs: readonly string[] | undefined): Matcher {
  return globs === undefined ? () => true : compileGlobs(globs, 'text').matches
}
