import { compileGlob } from '../match/glob.ts'
import { expandTilde, UNKNOWN, UNKNOWN_WORDS } from '../path.ts'
import { isKnown } from '../reading.ts'
import { expandBraces } from './braces.ts'
import { type Budget, Unreadable } from './budget.ts'
import type { Scope, Value } from './scope.ts'
import type { Part, Script, Word } from './syntax.ts'

const MAX_TEXT = 128 * 1024
const MAX_FIELDS = 1024
const MAX_TRIMMED = 256
/** How many characters cost a step where they are copied, where they are compared, and where a glob is tried on them. */
const COPIED_PER_STEP = 32
const SPLIT_PER_STEP = 4
const TRIED_PER_STEP = 16

/** What runs while a word is expanded is run by who runs scripts. */
export interface Nested {
  /** The output of `$(…)`, as far as it is known. */
  output(script: Script): string
  /** A path to read `<(…)` from. */
  process(script: Script): string
}

/** Expands words as a shell would, with UNKNOWN for what it cannot know. */
export class Expander {
  readonly #scope: Scope
  readonly #nested: Nested
  readonly #budget: Budget

  constructor(scope: Scope, nested: Nested, budget: Budget) {
    this.#scope = scope
    this.#nested = nested
    this.#budget = budget
  }

  /** The arguments that words become. */
  fields(words: readonly Word[]): readonly string[] {
    const fields: string[] = []
    for (const word of words) {
      const plain = onlyText(word)
      if (plain !== undefined) fields.push(plain)
      else for (const one of expandBraces(word, this.#budget)) fields.push(...this.#split(one))
      this.#budget.spend(1)
      if (fields.length > MAX_FIELDS) throw new Unreadable('It has too many arguments.')
    }
    return fields
  }

  /** The word as one text: assignments and redirects are not split. */
  text(word: Word): string {
    const plain = onlyText(word)
    if (plain !== undefined) return plain
    let text = ''
    for (const [at, part] of word.entries()) {
      const piece = at === 0 ? tilde(word, this.#ofPart(part)) : joined(this.#ofPart(part))
      this.#budget.spend(1 + piece.length / COPIED_PER_STEP)
      text += piece
      if (text.length > MAX_TEXT) throw new Unreadable('A word is too long.')
    }
    return text
  }

  #split(word: Word): readonly string[] {
    const fields = new Fields(this.#separators, this.#budget)
    for (const [at, part] of word.entries()) {
      const value = this.#ofPart(part)
      if (part.kind === 'text') fields.add(at === 0 ? tilde(word, value) : joined(value))
      else if ('isQuoted' in part && part.isQuoted) fields.addQuoted(value)
      else if (part.kind === 'process') fields.add(joined(value))
      else fields.addSplit(value)
    }
    return fields.end()
  }

  get #separators(): string {
    const separators = this.#scope.get('IFS')
    return typeof separators === 'string' && isKnown(separators) ? separators : ' \t\n'
  }

  #ofPart(part: Part): Value {
    if (part.kind === 'text') return part.text
    if (part.kind === 'output') return this.#nested.output(part.script)
    if (part.kind === 'process') return this.#nested.process(part.script)
    if (part.kind === 'parameter') return this.#parameter(part)
    this.text(part.word)
    return UNKNOWN
  }

  #parameter({ name, operator, operand }: Extract<Part, { kind: 'parameter' }>): Value {
    const value = this.#value(name)
    const apply = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined
    if (apply === undefined) {
      this.text(operand)
      return UNKNOWN
    }
    return apply({ name, value, scope: this.#scope, budget: this.#budget, operand: () => this.text(operand) })
  }

  /** Undefined when it is not set, as far as we know. */
  #value(name: string): Value | undefined {
    if (name === '@' || name === '*') return this.#scope.positionals
    if (/^[1-9]\d*$/u.test(name)) return this.#scope.positionals[Number(name) - 1] ?? ''
    return /^[A-Za-z_]/u.test(name) ? this.#scope.get(name) : UNKNOWN
  }
}

interface Applied {
  readonly name: string
  readonly value: Value | undefined
  readonly scope: Scope
  readonly budget: Budget
  readonly operand: () => string
}

const orElse = ({ value, operand }: Applied): Value => (isSet(value) ? value : operand())
const ifSet = ({ value, operand }: Applied): Value => (isSet(value) ? operand() : '')
const assign = (applied: Applied): Value => {
  const value = orElse(applied)
  applied.scope.set(applied.name, value)
  return value
}
const itself = ({ value, operand }: Applied): Value => {
  operand()
  return value ?? UNKNOWN
}

const OPERATORS: Readonly<Record<string, (applied: Applied) => Value>> = {
  '': itself,
  ':-': orElse,
  '-': orElse,
  ':=': assign,
  '=': assign,
  ':+': ifSet,
  '+': ifSet,
  ':?': itself,
  '?': itself,
  '#': (applied) => trim(applied, { isFront: true, isLongest: false }),
  '##': (applied) => trim(applied, { isFront: true, isLongest: true }),
  '%': (applied) => trim(applied, { isFront: false, isLongest: false }),
  '%%': (applied) => trim(applied, { isFront: false, isLongest: true }),
  '/': (applied) => replace(applied, false),
  '//': (applied) => replace(applied, true),
  '^': (applied) => onText(applied, (text) => text.charAt(0).toUpperCase() + text.slice(1)),
  '^^': (applied) => onText(applied, (text) => text.toUpperCase()),
  ',': (applied) => onText(applied, (text) => text.charAt(0).toLowerCase() + text.slice(1)),
  ',,': (applied) => onText(applied, (text) => text.toLowerCase()),
  ':': substring,
  length: (applied) => onText(applied, (text) => String(text.length)),
  indirect: ({ value, scope }) => (typeof value === 'string' ? (scope.get(value) ?? UNKNOWN) : UNKNOWN),
  '[': element,
}

function isSet(value: Value | undefined): value is Value {
  return value !== undefined && value.length > 0
}

function onText({ value, budget }: Applied, change: (text: string) => string): Value {
  if (typeof value !== 'string' || !isKnown(value)) return UNKNOWN
  budget.spend(1 + value.length / COPIED_PER_STEP)
  return change(value)
}

function trim(applied: Applied, { isFront, isLongest }: { isFront: boolean; isLongest: boolean }): Value {
  const glob = applied.operand()
  return onText(applied, (text) => {
    if (!isKnown(glob) || text.length > MAX_TRIMMED) return UNKNOWN
    applied.budget.spend((text.length * text.length * (1 + glob.length)) / TRIED_PER_STEP)
    const matches = compileGlob(glob, 'text')
    const lengths = Array.from({ length: text.length + 1 }, (_, length) => (isLongest ? text.length - length : length))
    const length = lengths.find((length) => matches(isFront ? text.slice(0, length) : text.slice(text.length - length)))
    if (length === undefined) return text
    return isFront ? text.slice(length) : text.slice(0, text.length - length)
  })
}

function replace(applied: Applied, isGlobal: boolean): Value {
  const [from = '', to = ''] = applied.operand().split('/', 2)
  if (from === '' || /[*?[\\]/u.test(from) || !isKnown(from)) return UNKNOWN
  return onText(applied, (text) => {
    const changed = isGlobal ? text.replaceAll(from, () => to) : text.replace(from, () => to)
    applied.budget.spend(text.length / SPLIT_PER_STEP + changed.length / COPIED_PER_STEP)
    if (changed.length > MAX_TEXT) throw new Unreadable('A word is too long.')
    return changed
  })
}

function substring(applied: Applied): Value {
  const counts = /^\s*(-?\d{1,6})\s*(?::\s*(-?\d{1,6})\s*)?$/u.exec(applied.operand())
  if (counts === null) return UNKNOWN
  const first = Number(counts[1])
  return onText(applied, (text) => {
    const rest = text.slice(first)
    return counts[2] === undefined ? rest : rest.slice(0, Number(counts[2]))
  })
}

function element({ value, operand }: Applied): Value {
  const index = operand()
  if (index === '@' || index === '*') return value ?? UNKNOWN
  if (!/^\d{1,4}$/u.test(index) || value === undefined) return UNKNOWN
  return (typeof value === 'string' ? [value] : value)[Number(index)] ?? ''
}

/** What the word says when nothing in it has to be expanded; most words are like that. */
function onlyText(word: Word): string | undefined {
  const [part] = word
  if (word.length !== 1 || part?.kind !== 'text') return undefined
  return part.isQuoted || !/[~{]/u.test(part.text) ? part.text : undefined
}

/** At the beginning of a word, up to its end or to a slash. */
function tilde(word: Word, value: Value): string {
  const text = joined(value)
  const [first] = word
  if (first?.kind !== 'text' || first.isQuoted || (word.length > 1 && !first.text.includes('/'))) return text
  return expandTilde(text) ?? text
}

function joined(value: Value): string {
  return typeof value === 'string' ? value : value.join(' ')
}

class Fields {
  readonly #separators: string
  readonly #budget: Budget
  readonly #fields: string[] = []
  #current: string | undefined

  constructor(separators: string, budget: Budget) {
    this.#separators = separators
    this.#budget = budget
  }

  add(text: string): void {
    this.#budget.spend(1 + text.length / COPIED_PER_STEP)
    this.#current = (this.#current ?? '') + text
    if (this.#current.length > MAX_TEXT) throw new Unreadable('A word is too long.')
  }

  /** The items of a list stay apart. */
  addQuoted(value: Value): void {
    if (typeof value === 'string') this.add(value)
    else for (const [at, item] of value.entries()) this.#addItem(item, at === 0)
  }

  addSplit(value: Value): void {
    for (const [at, item] of (typeof value === 'string' ? [value] : value).entries()) this.#addPieces(item, at === 0)
  }

  end(): readonly string[] {
    this.#close()
    return this.#fields
  }

  #addItem(item: string, isFirst: boolean): void {
    if (!isFirst) this.#close()
    this.add(item)
  }

  #addPieces(text: string, isFirst: boolean): void {
    if (!isFirst) this.#close()
    if (text === UNKNOWN && this.#current === undefined) return this.add(UNKNOWN_WORDS)
    const pieces = this.#pieces(text)
    for (const [at, piece] of pieces.entries()) {
      if (at > 0) this.#close()
      if (piece !== '') this.add(piece)
    }
  }

  #pieces(text: string): readonly string[] {
    this.#budget.spend(text.length / SPLIT_PER_STEP)
    const pieces = ['']
    for (const char of text) {
      if (this.#separators.includes(char)) pieces.push('')
      else pieces[pieces.length - 1] += char
    }
    return pieces
  }

  #close(): void {
    if (this.#current !== undefined) this.#fields.push(ofOneWord(this.#current))
    this.#current = undefined
    if (this.#fields.length > MAX_FIELDS) throw new Unreadable('It has too many arguments.')
  }
}

/** What stands beside something known is one word. */
function ofOneWord(text: string): string {
  return text === UNKNOWN_WORDS ? text : text.replaceAll(UNKNOWN_WORDS, UNKNOWN)
}
