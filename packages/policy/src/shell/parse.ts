import { type Budget, Unreadable } from './budget.ts'
import { Cursor } from './cursor.ts'
import type { Assignment, Command, Pipeline, Redirect, Script, Word } from './syntax.ts'
import { WordReader } from './words.ts'

const BLANKS = /(?:[ \t\r]|\\\n)*/y
const BLANK = new Set([' ', '\t', '\r', '\\'])
const COMMENT = /#[^\n]*/y
const RESERVED = /(?:[a-z]+|[!{}]|\[\[|\]\])(?=[\s;&|<>()]|$)/y
const LINE = /[^\n]*/y
const FUNCTION_PARENTHESES = /[ \t]*\([ \t]*\)/y
const REDIRECT = /(?:[0-9]+|\{[A-Za-z_]\w*\})?(?:&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())/y
const MAY_REDIRECT = new Set('0123456789{&<>')
const ASSIGNMENT = /[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=/y
/** What one command costs to read, beside its words. */
const COMMAND = 6
const REDIRECTION = 6
const ASSIGNED = 3
const FUNCTION_NAME = /[^\s;&|<>()$`'"\\]+/y

/** Throws Unreadable: the text is not a script, or beyond the bounds. */
export function parseScript(text: string, budget: Budget): Script {
  return new Parser(new Cursor(text, budget)).whole()
}

class Parser {
  readonly #cursor: Cursor
  readonly #words: WordReader
  readonly #hereDocuments: { redirect: Redirect; delimiter: string; isPlain: boolean; isIndented: boolean }[] = []

  constructor(cursor: Cursor) {
    this.#cursor = cursor
    this.#words = new WordReader(cursor, (inner, how) =>
      inner === cursor && how === 'until-parenthesis' ? this.#untilParenthesis() : new Parser(inner).whole(),
    )
  }

  whole(): Script {
    const script = this.#script([])
    if (!this.#cursor.isAtEnd) throw new Unreadable(`Something is left over at "${this.#cursor.peek()}".`)
    return script
  }

  #untilParenthesis(): Script {
    const script = this.#script([')'])
    this.#cursor.require(')')
    return script
  }

  /** Pipelines up to one of the words, which is not eaten. */
  #script(stops: readonly string[]): Script {
    const pipelines: Pipeline[] = []
    let isAfterFailure = false
    for (;;) {
      this.#skipSeparators()
      if (this.#cursor.isAtEnd || this.#isAt(stops)) break
      const commands = this.#pipeline()
      const separator = this.#separator()
      pipelines.push({ commands, isBackground: separator === '&', isAfterFailure })
      isAfterFailure = separator === '||'
      if (separator === '') break
    }
    this.#skipSeparators()
    return pipelines
  }

  /** What ends a pipeline; empty when what encloses it has to go on. */
  #separator(): string {
    const cursor = this.#cursor
    this.#blanks()
    if (cursor.startsWith(';;') || cursor.startsWith(';&')) return ''
    return ['&&', '||', ';', '&'].find((separator) => cursor.eat(separator)) ?? (this.#newline() ? '\n' : '')
  }

  #pipeline(): readonly Command[] {
    const commands: Command[] = []
    do {
      this.#skipNewlines()
      while (this.#eatReserved('!') || this.#eatReserved('time')) this.#blanks()
      commands.push(this.#cursor.nested(() => this.#command()))
      this.#blanks()
    } while (this.#eatPipe())
    return commands
  }

  #eatPipe(): boolean {
    const cursor = this.#cursor
    return !cursor.startsWith('||') && (cursor.eat('|&') || cursor.eat('|'))
  }

  #command(): Command {
    const cursor = this.#cursor
    cursor.count(COMMAND)
    if (cursor.startsWith('(('))
      return cursor.either(
        () => this.#arithmetic(),
        () => this.#parenthesised(),
      )
    if (cursor.peek() === '(') return this.#parenthesised()
    const reserved = this.#peekReserved()
    const read = Object.hasOwn(COMPOUND, reserved) ? COMPOUND[reserved] : undefined
    if (read === undefined) return this.#simple()
    cursor.at += reserved.length
    return read(this.#compound)
  }

  /** What the table of compound commands may use. */
  readonly #compound: Compound = {
    script: (stops) => this.#script(stops),
    group: () => this.#group(false),
    word: () => this.#requireWord(),
    words: () => this.#wordsUntilEnd(),
    command: () => {
      this.#skipNewlines()
      return this.#cursor.nested(() => this.#command())
    },
    redirects: () => this.#redirects(),
    eat: (word) => this.#eatReserved(word),
    require: (word) => {
      this.#skipSeparators()
      if (!this.#eatReserved(word)) throw new Unreadable(`There is no "${word}" where one must be.`)
    },
    name: () => {
      this.#blanks()
      return this.#cursor.take(FUNCTION_NAME)
    },
    parentheses: () => this.#cursor.take(FUNCTION_PARENTHESES) !== '',
    test: () => this.#test(),
    arithmetic: () => {
      this.#blanks()
      return this.#cursor.eat('((') ? this.#words.arithmetic() : undefined
    },
    pattern: () => this.#casePattern(),
    endOfCase: () => {
      this.#skipNewlines()
      return [';;&', ';;', ';&'].some((end) => this.#cursor.eat(end))
    },
    skip: () => this.#skipSeparators(),
  }

  #group(isSubshell: boolean): Command {
    const body = this.#script([isSubshell ? ')' : '}'])
    if (isSubshell) this.#cursor.require(')')
    else if (!this.#eatReserved('}')) throw new Unreadable('Nothing closes the "{".')
    return { kind: 'group', body, isSubshell, redirects: this.#redirects() }
  }

  #parenthesised(): Command {
    this.#cursor.require('(')
    return this.#group(true)
  }

  #arithmetic(): Command {
    this.#cursor.require('((')
    return { kind: 'test', words: [this.#words.arithmetic()], redirects: this.#redirects() }
  }

  #test(): Command {
    const cursor = this.#cursor
    const words: Word[] = []
    for (;;) {
      this.#skipNewlines()
      if (cursor.isAtEnd) throw new Unreadable('Nothing closes the test.')
      if (this.#eatReserved(']]')) return { kind: 'test', words, redirects: this.#redirects() }
      const word = this.#words.word()
      cursor.count()
      if (word.length > 0) words.push(word)
      else cursor.at++
    }
  }

  #casePattern(): readonly Word[] {
    const cursor = this.#cursor
    const words: Word[] = []
    this.#blanks()
    cursor.eat('(')
    for (;;) {
      this.#blanks()
      words.push(this.#requireWord())
      this.#blanks()
      if (cursor.eat(')')) return words
      cursor.require('|')
    }
  }

  #simple(): Command {
    const assignments: Assignment[] = []
    const words: Word[] = []
    const redirects: Redirect[] = []
    for (;;) {
      this.#blanks()
      const redirect = this.#redirect()
      if (redirect !== undefined) {
        redirects.push(redirect)
        continue
      }
      const assignment = words.length === 0 || isDeclaration(words) ? this.#assignment() : undefined
      if (assignment !== undefined) {
        assignments.push(assignment)
        continue
      }
      const word = this.#words.word()
      if (word.length === 0) break
      words.push(word)
      if (words.length === 1 && assignments.length === 0 && this.#cursor.take(FUNCTION_PARENTHESES) !== '')
        return this.#function(literal(word))
    }
    if (assignments.length + words.length + redirects.length === 0)
      throw new Unreadable(`There is no command at "${this.#cursor.peek()}".`)
    return { kind: 'simple', assignments, words, redirects }
  }

  #function(name: string): Command {
    this.#skipNewlines()
    return { kind: 'function', name, body: this.#cursor.nested(() => this.#command()) }
  }

  #assignment(): Assignment | undefined {
    const cursor = this.#cursor
    const target = cursor.take(ASSIGNMENT)
    if (target === '') return undefined
    cursor.count(ASSIGNED)
    const name = /^\w+/u.exec(target)?.[0] ?? ''
    const isAppended = target.endsWith('+=')
    if (cursor.eat('(')) return { name, value: [], items: this.#arrayItems(), isAppended }
    return { name, value: this.#words.word(), items: undefined, isAppended }
  }

  #arrayItems(): readonly Word[] {
    const items: Word[] = []
    for (;;) {
      this.#skipNewlines()
      if (this.#cursor.eat(')')) return items
      items.push(this.#requireWord())
    }
  }

  #redirects(): readonly Redirect[] {
    const redirects: Redirect[] = []
    for (;;) {
      this.#blanks()
      const redirect = this.#redirect()
      if (redirect === undefined) return redirects
      redirects.push(redirect)
    }
  }

  #redirect(): Redirect | undefined {
    const found = MAY_REDIRECT.has(this.#cursor.peek()) ? this.#cursor.take(REDIRECT) : ''
    if (found === '') return undefined
    this.#cursor.count(REDIRECTION)
    const operator = found.replace(/^(?:[0-9]+|\{\w+\})/u, '')
    this.#blanks()
    const target = this.#requireWord()
    if (operator !== '<<' && operator !== '<<-') return { operator, target }
    const redirect: Redirect = { operator: '<<', target: [] }
    const isPlain = target.some((part) => part.kind !== 'text' || part.isQuoted)
    this.#hereDocuments.push({ redirect, delimiter: literal(target), isPlain, isIndented: operator === '<<-' })
    return redirect
  }

  #requireWord(): Word {
    this.#blanks()
    const word = this.#words.word()
    if (word.length === 0) throw new Unreadable(`There is no word at "${this.#cursor.peek()}".`)
    return word
  }

  /** The words of `for x in …`. */
  #wordsUntilEnd(): readonly Word[] {
    const words: Word[] = []
    for (;;) {
      this.#blanks()
      const word = this.#words.word()
      if (word.length === 0) return words
      words.push(word)
    }
  }

  #isAt(stops: readonly string[]): boolean {
    const cursor = this.#cursor
    if (cursor.peek() === ')') return stops.includes(')')
    if (cursor.startsWith(';;') || cursor.startsWith(';&')) return stops.includes(';;')
    const reserved = this.#peekReserved()
    return reserved !== '' && stops.includes(reserved)
  }

  #peekReserved(): string {
    const begin = this.#cursor.at
    const reserved = this.#cursor.take(RESERVED)
    this.#cursor.at = begin
    return reserved
  }

  #eatReserved(word: string): boolean {
    this.#blanks()
    if (!this.#cursor.startsWith(word) || this.#peekReserved() !== word) return false
    this.#cursor.at += word.length
    return true
  }

  #skipSeparators(): void {
    const cursor = this.#cursor
    for (;;) {
      this.#skipNewlines()
      if (cursor.peek() !== ';' || cursor.startsWith(';;') || cursor.startsWith(';&')) return
      cursor.count()
      cursor.at++
    }
  }

  #skipNewlines(): void {
    do this.#blanks()
    while (this.#newline())
  }

  #blanks(): void {
    const cursor = this.#cursor
    if (BLANK.has(cursor.peek())) cursor.take(BLANKS)
    if (cursor.peek() === '#') cursor.take(COMMENT)
  }

  #newline(): boolean {
    if (!this.#cursor.eat('\n')) return false
    this.#cursor.count()
    for (const pending of this.#hereDocuments.splice(0)) {
      const text = this.#hereText(pending.delimiter, pending.isIndented)
      pending.redirect.target = pending.isPlain
        ? [{ kind: 'text', text, isQuoted: true }]
        : this.#cursor.nested(() => new Parser(this.#cursor.inner(text)).#words.body())
    }
    return true
  }

  /** The lines up to the delimiter, or to the end: shells take that too. */
  #hereText(delimiter: string, isIndented: boolean): string {
    const cursor = this.#cursor
    const lines: string[] = []
    while (!cursor.isAtEnd) {
      cursor.count()
      const raw = cursor.take(LINE)
      cursor.eat('\n')
      const line = isIndented ? raw.replace(/^\t+/u, '') : raw
      if (line === delimiter) break
      lines.push(line)
    }
    return lines.map((line) => `${line}\n`).join('')
  }
}

interface Compound {
  readonly script: (stops: readonly string[]) => Script
  readonly group: () => Command
  readonly word: () => Word
  readonly words: () => readonly Word[]
  readonly command: () => Command
  readonly redirects: () => readonly Redirect[]
  readonly eat: (word: string) => boolean
  readonly require: (word: string) => void
  readonly name: () => string
  readonly parentheses: () => boolean
  readonly test: () => Command
  readonly arithmetic: () => Word | undefined
  readonly pattern: () => readonly Word[]
  readonly endOfCase: () => boolean
  readonly skip: () => void
}

const COMPOUND: Readonly<Record<string, (parser: Compound) => Command>> = {
  '{': (parser) => parser.group(),
  '[[': (parser) => parser.test(),
  if: readIf,
  while: (parser) => readLoop(parser, false),
  until: (parser) => readLoop(parser, true),
  for: readFor,
  select: readFor,
  case: readCase,
  function: (parser) => {
    const name = parser.name()
    parser.parentheses()
    return { kind: 'function', name, body: parser.command() }
  },
  coproc: (parser) => ({
    kind: 'group',
    body: [{ commands: [parser.command()], isBackground: true, isAfterFailure: false }],
    isSubshell: true,
    redirects: [],
  }),
}

function readIf(parser: Compound): Command {
  const choice: Pipeline[] = []
  const branches: Script[] = []
  do {
    choice.push(...parser.script(['then']))
    parser.require('then')
    branches.push(parser.script(['elif', 'else', 'fi']))
  } while (parser.eat('elif'))
  if (parser.eat('else')) branches.push(parser.script(['fi']))
  parser.require('fi')
  return { kind: 'branches', choice, words: [], branches, redirects: parser.redirects() }
}

function readLoop(parser: Compound, isUntil: boolean): Command {
  const condition = parser.script(['do'])
  return { kind: 'loop', condition, isUntil, words: [], ...readDo(parser) }
}

function readFor(parser: Compound): Command {
  const counting = parser.arithmetic()
  if (counting !== undefined)
    return { kind: 'loop', condition: undefined, isUntil: false, words: [counting], ...readDo(parser) }
  const name = parser.name()
  parser.skip()
  const items = parser.eat('in') ? parser.words() : undefined
  return { kind: 'for', name, items, ...readDo(parser) }
}

function readDo(parser: Compound): { body: Script; redirects: readonly Redirect[] } {
  parser.skip()
  if (parser.eat('{')) {
    const group = parser.group()
    return { body: [{ commands: [group], isBackground: false, isAfterFailure: false }], redirects: [] }
  }
  parser.require('do')
  const body = parser.script(['done'])
  parser.require('done')
  return { body, redirects: parser.redirects() }
}

function readCase(parser: Compound): Command {
  const words = [parser.word()]
  const branches: Script[] = []
  parser.require('in')
  for (;;) {
    parser.skip()
    if (parser.eat('esac')) break
    parser.pattern()
    branches.push(parser.script([';;', 'esac']))
    if (parser.endOfCase()) continue
    parser.require('esac')
    break
  }
  return { kind: 'branches', choice: [], words, branches, redirects: parser.redirects() }
}

/** What its words say when nothing in them has to be expanded. */
export function literal(word: Word): string {
  return word.map((part) => (part.kind === 'text' ? part.text : '')).join('')
}

const DECLARATIONS = new Set(['export', 'declare', 'typeset', 'local', 'readonly'])

function isDeclaration([first]: readonly Word[]): boolean {
  return first !== undefined && DECLARATIONS.has(literal(first))
}
