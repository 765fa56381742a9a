import type { Trait } from '@airlock/contract'
import { readCode } from '../code/read-code.ts'
import { compileGlob, hasWildcard } from '../match/glob.ts'
import { normalisePath, UNKNOWN } from '../path.ts'
import { type CodeText, Invocation, type InvocationFacts, isKnown, type Reading } from '../reading.ts'
import { type Budget, Exhausted, Unreadable } from './budget.ts'
import { Expander } from './expand.ts'
import { isEndless, mentions } from './loops.ts'
import { parseScript } from './parse.ts'
import { lookInto } from './programs/table.ts'
import type { Scope } from './scope.ts'
import { NO_OUTPUT, type Looked, type Output, type Shell, type Started } from './started.ts'
import type { Assignment, Command, Pipeline, Redirect, Script, SimpleCommand } from './syntax.ts'

const MAX_DEPTH = 24
const MAX_ITEMS = 16
/** What is counted for a command, and for what rules will look at in it. */
const COMMAND = 4
const NOTE = 8
const WORD = 3
const GLOB = 60
const CHARACTERS_PER_STEP = 32
const PATH_PER_STEP = 8
const CWD_PER_STEP = 16
const PAUSES = new Set(['sleep', 'wait', 'read', 'break', 'exit', 'return', 'inotifywait', 'timeout'])

interface Context {
  readonly stdin: Output | undefined
  /** It does not wait for its end, or runs beside others. */
  readonly isSpawned: boolean
}

interface Io {
  readonly reads: readonly string[]
  readonly writes: readonly string[]
  readonly stdin: Output | undefined
}

/** Goes through a script as a shell would, without doing anything, and notes what would be started. */
export class Walker implements Shell {
  readonly #invocations: Invocation[] = []
  readonly #codes: CodeText[] = []
  readonly #functions = new Map<string, { readonly body: Command; isCalled: boolean }>()
  readonly #calling: string[] = []
  readonly #files = new Map<string, Output>()
  readonly #loops: Trait[] = []
  readonly #budget: Budget
  scope: Scope
  #depth = 0
  /** Of what is unknown in the words that are being expanded. */
  #sources: string[] = []

  constructor(scope: Scope, budget: Budget) {
    this.scope = scope
    this.#budget = budget
  }

  /** Functions that nobody called are read too: somebody may. What their arguments are is not known, and no fault of theirs. */
  finish(): Reading {
    const begin = this.#invocations.length
    for (const [name, called] of this.#functions)
      if (!called.isCalled) this.#guard(() => this.#callFunction(name, { words: [UNKNOWN], context: FREE }))
    const uncalled = this.#invocations.splice(begin).filter(({ traits }) => !traits.includes('unreadable'))
    return { invocations: [...this.#invocations, ...uncalled], codes: this.#codes, work: this.#budget.spent }
  }

  /** Whatever cannot be read is noted as that. */
  #guard(walk: () => void): void {
    try {
      walk()
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      this.#noteUnreadable()
    }
  }

  read(walk: (shell: Walker) => void): void {
    this.#guard(() => walk(this))
  }

  run(text: string, own?: { readonly positionals: readonly string[]; readonly stdin?: Output | undefined }): Output {
    const outer = this.scope
    const context = { stdin: own?.stdin, isSpawned: false }
    try {
      if (own !== undefined) this.scope = this.#copied(outer)
      if (own !== undefined) this.scope.positionals = own.positionals
      return this.#nested(() => this.#script(parseScript(text, this.#budget), context))
    } catch (error) {
      if (!(error instanceof Unreadable) || error instanceof Exhausted) throw error
      this.#noteUnreadable()
      return { text: undefined, sources: [] }
    } finally {
      if (own !== undefined) this.scope = outer
    }
  }

  readCode(runtime: string, code: string): void {
    const reading = readCode(runtime, code, {
      readLine: (line) => this.#ofLine(line),
      spend: (work) => this.spend(work),
    })
    this.#codes.push(...reading.codes)
    this.#invocations.push(...reading.invocations)
  }

  /** What a line in code would start; nobody has to cover it. */
  #ofLine(line: string): readonly Invocation[] {
    const begin = this.#invocations.length
    this.run(line, { positionals: [] })
    return this.#invocations.splice(begin).map((invocation) => invocation.covered())
  }

  spend(work: number): void {
    this.#budget.spend(work)
  }

  note(facts: Omit<InvocationFacts, 'cwd'>): void {
    this.spend(costOf(facts, this.scope.cwd))
    this.#invocations.push(new Invocation({ ...facts, cwd: this.scope.cwd }))
  }

  /** Costs nothing: it is what is said when there is nothing left to spend. */
  #noteUnreadable(): void {
    this.#invocations.push(new Invocation({ program: '', words: [], traits: ['unreadable'], cwd: this.scope.cwd }))
  }

  /** Each once: what they become is copied from one program to the next. */
  #sourcesOf(outputs: readonly Output[]): readonly string[] {
    const [only] = outputs
    if (outputs.length === 1 && only !== undefined) return only.sources
    const all = outputs.flatMap(({ sources }) => sources)
    this.spend(outputs.length + all.length)
    return [...new Set(all)]
  }

  #copied(scope: Scope): Scope {
    this.spend(scope.size)
    return scope.copy()
  }

  file(path: string): Output | undefined {
    this.spend(lengthCost(path))
    return this.#files.get(normalisePath(path, this.scope.cwd))
  }

  #nested<T>(walk: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new Exhausted('It is nested too deeply.')
    try {
      return walk()
    } finally {
      this.#depth--
    }
  }

  #script(script: Script, context: Context): Output {
    const outputs = script.map((pipeline) => this.#listed(pipeline, context))
    if (outputs.length === 1 && outputs[0] !== undefined) return outputs[0]
    const isAllKnown = outputs.every(({ text }) => text !== undefined)
    return {
      text: isAllKnown ? outputs.map(({ text }) => text).join('') : undefined,
      sources: this.#sourcesOf(outputs),
    }
  }

  /** What runs only after a failure may not run: what it changes is not known. */
  #listed(pipeline: Pipeline, context: Context): Output {
    if (!pipeline.isAfterFailure) return this.#pipeline(pipeline, context)
    const outer = this.scope
    this.scope = this.#copied(outer)
    const output = this.#pipeline(pipeline, context)
    outer.mergeWays([this.scope])
    this.scope = outer
    return output
  }

  #pipeline({ commands, isBackground }: Pipeline, context: Context): Output {
    const isSpawned = isBackground || commands.length > 1 || context.isSpawned
    if (isBackground && this.#loops.length > 0) this.note({ program: '', words: [], traits: ['endless-spawn'] })
    let output = context.stdin
    for (const command of commands) output = this.#command(command, { stdin: output, isSpawned })
    return output ?? NO_OUTPUT
  }

  #command(command: Command, context: Context): Output {
    this.spend(COMMAND)
    if (command.kind === 'simple') return this.#simple(command, context)
    if (command.kind === 'function') {
      this.#functions.set(command.name, { body: command.body, isCalled: false })
      return NO_OUTPUT
    }
    const io = this.#io(command.redirects, context)
    const output = this.#nested(() => this.#compound(command, { ...context, stdin: io.stdin }))
    if (io.writes.length + io.reads.length > 0) this.note({ program: '', words: [], redirects: io })
    for (const path of io.writes) this.#written(path, output)
    return output
  }

  #compound(command: Exclude<Command, SimpleCommand | { kind: 'function' }>, context: Context): Output {
    if (command.kind === 'group') return this.#group(command, context)
    if (command.kind === 'for') return this.#for(command, context)
    if (command.kind === 'loop') return this.#loop(command, context)
    for (const word of command.words) this.#expander.text(word)
    if (command.kind === 'test') return NO_OUTPUT
    this.#script(command.choice, context)
    return this.#ways(command.branches, context)
  }

  #group({ body, isSubshell }: Extract<Command, { kind: 'group' }>, context: Context): Output {
    if (!isSubshell) return this.#script(body, context)
    return this.#inCopy(() => this.#script(body, context))
  }

  #ways(branches: readonly Script[], context: Context): Output {
    const outer = this.scope
    const outputs: Output[] = []
    const scopes = branches.map((branch) => {
      this.scope = this.#copied(outer)
      outputs.push(this.#script(branch, context))
      return this.scope
    })
    this.scope = outer
    outer.mergeWays(scopes)
    const [only] = outputs
    return outputs.length === 1 && only?.text === '' ? only : { text: undefined, sources: this.#sourcesOf(outputs) }
  }

  #for({ name, items, body }: Extract<Command, { kind: 'for' }>, context: Context): Output {
    const values = items === undefined ? this.scope.positionals : this.#expander.fields(items)
    const some = values.length > MAX_ITEMS ? [UNKNOWN] : values
    const outputs = some.map((value) => {
      this.scope.set(name, value)
      return this.#script(body, context)
    })
    return { text: undefined, sources: this.#sourcesOf(outputs) }
  }

  #loop(loop: Extract<Command, { kind: 'loop' }>, context: Context): Output {
    for (const word of loop.words) this.#expander.text(word)
    if (loop.condition !== undefined) this.#script(loop.condition, context)
    const isUnending = isEndless(loop) && !mentions(loop.body, PAUSES)
    const before = this.#loops.length
    if (isUnending) this.#loops.push('endless-loop')
    const output = this.#ways([loop.body], context)
    this.#loops.length = before
    return output
  }

  #simple({ assignments, words, redirects }: SimpleCommand, context: Context): Output {
    this.#sources = []
    const argv = this.#expander.fields(words)
    const sources = this.#sources
    const io = this.#io(redirects, context)
    if (words.length === 0 || DECLARATIONS.has(argv[0] ?? '')) {
      for (const assignment of assignments) this.#assign(assignment)
      const names = assignments.map(({ name }) => name)
      if (argv.length > 0) for (const name of names) this.scope.exported.add(name)
      if (words.length === 0) return this.#withoutProgram(names, io)
      return this.#started(argv, { io, sources, assigns: names, isSpawned: context.isSpawned })
    }
    const assigns = assignments.map(({ name }) => name)
    const how = { io, sources, assigns, isSpawned: context.isSpawned }
    if (assignments.length === 0) return this.#started(argv, how)
    if (argv.length > 0) return this.#inCopy(() => this.#assignThen(assignments, () => this.#started(argv, how)))
    return this.#assignThen(assignments, () => NO_OUTPUT)
  }

  #assignThen<T>(assignments: readonly Assignment[], walk: () => T): T {
    for (const assignment of assignments) this.#assign(assignment)
    return walk()
  }

  #withoutProgram(names: readonly string[], io: Io): Output {
    if (io.writes.length > 0 || io.reads.length > 0)
      this.note({ program: '', words: [], redirects: io, assigns: names, traits: this.#traits() })
    else if (names.some((name) => this.scope.exported.has(name))) this.note({ program: '', words: [], assigns: names })
    for (const path of io.writes) this.#written(path, io.stdin ?? NO_OUTPUT)
    return NO_OUTPUT
  }

  start(
    argv: readonly string[],
    more: { readonly stdin?: Output | undefined; readonly sources?: readonly string[] } = {},
  ): Output {
    this.spend(COMMAND)
    const io = { reads: [], writes: [], stdin: more.stdin }
    return this.#nested(() => this.#started(argv, { io, sources: more.sources ?? [], assigns: [], isSpawned: false }))
  }

  #started(argv: readonly string[], how: How): Output {
    const [first, ...words] = argv
    if (first === undefined) return NO_OUTPUT
    if (this.#functions.has(first))
      return this.#callFunction(first, { words, context: { stdin: how.io.stdin, isSpawned: how.isSpawned } })
    this.spend(words.length)
    const program = first.slice(first.lastIndexOf('/') + 1)
    if (hasWildcard(program)) this.spend(GLOB)
    for (const meant of meantPrograms(program)) this.#started([meant, ...words], how)
    const looked = isProgram(first, program)
      ? this.#look({ program, words, stdin: how.io.stdin, sources: how.sources }, first)
      : { traits: ['unreadable'] as const }
    this.#noteStarted({ program: isKnown(program) ? program : '', words }, { how, looked })
    return this.#outputOfStarted(program, { how, looked })
  }

  #outputOfStarted(program: string, { how, looked }: { how: How; looked: Looked }): Output {
    for (const path of looked.files ?? []) this.#written(path, { text: undefined, sources: [program] })
    const before = how.io.stdin?.sources ?? []
    const sources = before.includes(program) ? before : [program, ...before]
    const output = looked.output ?? { text: undefined, sources }
    for (const path of how.io.writes) this.#written(path, output)
    return how.io.writes.length > 0 ? NO_OUTPUT : output
  }

  /** A script that was written before is run by its name too. */
  #look(started: Started, path: string): Looked {
    const looked = lookInto(started, this)
    const content = looked.runsOutputOf === undefined && path.includes('/') ? this.file(path) : undefined
    if (content === undefined) return looked
    if (content.text === undefined) return { ...looked, runsOutputOf: content.sources }
    this.run(content.text, { positionals: started.words })
    return looked
  }

  #noteStarted(
    { program, words }: { program: string; words: readonly string[] },
    { how, looked }: { how: How; looked: Looked },
  ): void {
    this.spend(this.scope.exported.size * (1 + how.assigns.length))
    const exported = [...this.scope.exported].filter((name) => !how.assigns.includes(name))
    const assigns = [...how.assigns, ...exported, ...(looked.assigns ?? [])]
    this.note({
      program,
      words,
      redirects: how.io,
      assigns,
      runsOutputOf: looked.runsOutputOf ?? [],
      inputFrom: how.io.stdin?.sources ?? [],
      traits: [...(looked.traits ?? []), ...this.#traits()],
      isCovered: looked.isCovered === true && how.io.writes.length === 0,
    })
  }

  #traits(): readonly Trait[] {
    return this.#loops
  }

  /** One that starts itself beside itself never ends; one that only calls itself is not followed further. */
  #callFunction(name: string, { words, context }: { words: readonly string[]; context: Context }): Output {
    const called = this.#functions.get(name)
    if (called === undefined) return NO_OUTPUT
    called.isCalled = true
    if (this.#calling.includes(name)) {
      if (context.isSpawned) this.note({ program: name, words: [], traits: ['fork-bomb'] })
      return { text: undefined, sources: [] }
    }
    const outer = this.scope.positionals
    this.#calling.push(name)
    this.scope.positionals = words
    try {
      return this.#nested(() => this.#command(called.body, { stdin: context.stdin, isSpawned: false }))
    } finally {
      this.#calling.pop()
      this.scope.positionals = outer
    }
  }

  #assign({ name, value, items, isAppended }: Assignment): void {
    const before = this.scope.get(name)
    if (items !== undefined) {
      const list = typeof before === 'object' ? before : []
      this.scope.set(name, [...(isAppended ? list : []), ...this.#expander.fields(items)])
      return
    }
    const text = this.#expander.text(value)
    this.scope.set(name, isAppended && typeof before === 'string' ? before + text : text)
  }

  #io(redirects: readonly Redirect[], context: Context): Io {
    const reads: string[] = []
    const writes: string[] = []
    let { stdin } = context
    for (const { operator, target } of redirects) {
      const text = this.#expander.text(target)
      if (operator === '<<' || operator === '<<<')
        stdin = isKnown(text) ? { text, sources: [] } : this.#unknownText(text)
      else if (operator === '<') {
        reads.push(text)
        stdin = this.file(text) ?? { text: undefined, sources: [] }
      } else if (!/^(?:\d+|-)$/u.test(text)) writes.push(text)
      if (operator === '<>') reads.push(text)
    }
    return { reads, writes, stdin }
  }

  /** With a gap in it, the rest can still be read. */
  #unknownText(text: string): Output {
    return { text, sources: this.#sources }
  }

  #written(path: string, output: Output): void {
    if (this.#files.size < 64) this.#files.set(normalisePath(path, this.scope.cwd), output)
  }

  readonly #expansions = {
    output: (script: Script) => this.#outputOf(script),
    process: (script: Script) => this.#pathOf(script),
  }

  get #expander(): Expander {
    return new Expander(this.scope, this.#expansions, this.#budget)
  }

  #outputOf(script: Script): string {
    const outer = this.#sources
    const { text, sources } = this.#nested(() => this.#inCopy(() => this.#script(script, FREE)))
    this.#sources = text === undefined ? [...outer, ...sources] : outer
    return text === undefined ? UNKNOWN : text.replace(/\n+$/u, '')
  }

  #pathOf(script: Script): string {
    const outer = this.#sources
    const output = this.#nested(() => this.#inCopy(() => this.#script(script, FREE)))
    this.#sources = outer
    const path = `/dev/fd/${63 + this.#files.size}`
    this.#written(path, output)
    return path
  }

  #inCopy<T>(walk: () => T): T {
    const outer = this.scope
    this.scope = this.#copied(outer)
    try {
      return walk()
    } finally {
      this.scope = outer
    }
  }
}

interface How {
  readonly io: Io
  readonly sources: readonly string[]
  readonly assigns: readonly string[]
  readonly isSpawned: boolean
}

/** What rules look at in it, most of them at all of it. */
function costOf(facts: Omit<InvocationFacts, 'cwd'>, cwd: string): number {
  const { words, inputFrom = [], runsOutputOf = [], assigns = [], redirects } = facts
  const ofWord = WORD + cwd.length / CWD_PER_STEP
  let cost = NOTE + (inputFrom.length + runsOutputOf.length) * WORD + assigns.length
  for (const word of [...words, ...(redirects?.reads ?? []), ...(redirects?.writes ?? [])])
    cost += ofWord + lengthCost(word) + (hasWildcard(word) ? GLOB + 4 * Math.min(word.length, 256) : 0)
  return cost
}

/** A path has to be spelled in one way, name by name. */
function lengthCost(word: string): number {
  return word.length / (word.includes('/') ? PATH_PER_STEP : CHARACTERS_PER_STEP)
}

const FREE: Context = { stdin: undefined, isSpawned: false }
const DECLARATIONS = new Set(['export', 'declare', 'typeset', 'local', 'readonly'])

/** What a glob in the place of a program could become, of what is worth hiding. */
function meantPrograms(program: string): readonly string[] {
  if (!hasWildcard(program) || program === '[' || program.length > 64) return []
  return HIDDEN.filter(compileGlob(program, 'text')).slice(0, 4)
}

const HIDDEN = [
  'rm',
  'dd',
  'sh',
  'bash',
  'sudo',
  'mkfs',
  'chmod',
  'reboot',
  'shutdown',
  'curl',
  'wget',
  'nc',
  'cat',
  'python3',
]

/** Its name is known and of plain letters, or it lies in a place of the user's own. */
function isProgram(path: string, program: string): boolean {
  if (/[^ -~]/u.test(program) && path === program) return false
  return (isKnown(program) && program !== '') || /^(?:\.{1,2}\/|\/workspace\/|\/tmp\/|\/home\/user\/)/u.test(path)
}
