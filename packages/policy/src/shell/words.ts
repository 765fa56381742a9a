import { Unreadable } from './budget.ts'
import type { Cursor } from './cursor.ts'
import { decodeAnsi } from './quotes.ts'
import type { Part, Script, Word } from './syntax.ts'

const END = new Set(['', ' ', '\t', '\n', ';', '&', '|', '(', ')'])
const PLAIN = /(?:[^\s;&|<>()\\'"$`?*+@!]|[?*+@!](?!\())+/y
const QUOTED_PLAIN = /[^"\\$`]+/y
const BODY_PLAIN = /[^\\$`]+/y
const ARITHMETIC_PLAIN = /[^\\$`()]+/y
const OPERAND_PLAIN = /[^}\\'"$`]+/y
const NAME = /[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]/y
const SHORT_NAME = /[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]/y
const OPERATOR = /:[-=+?]|##|%%|\/\/|\^\^|,,|[-=+?#%/^,:@]/y

/** A script that is read by a reader of its own. */
const BACKQUOTED = 6
/** Where it goes on one by one. */
const CHARACTERS_PER_STEP = 8

/** Scripts inside of words are read by who reads scripts. */
export type ReadNested = (cursor: Cursor, how: 'until-parenthesis' | 'whole') => Script

/** Reads words with all their quotes and expansions, without doing any of it. */
export class WordReader {
  readonly #cursor: Cursor
  readonly #readNested: ReadNested

  constructor(cursor: Cursor, readNested: ReadNested) {
    this.#cursor = cursor
    this.#readNested = readNested
  }

  /** The word that begins here; empty when none does. */
  word(): Word {
    const parts: Part[] = []
    while (this.#wordPart(parts)) this.#cursor.count()
    if (parts.length > 0) this.#cursor.count()
    return parts
  }

  /** The text of a here-document, in which only `$`, backquotes and `\` are special. */
  body(): Word {
    const parts: Part[] = []
    while (!this.#cursor.isAtEnd) {
      this.#cursor.count()
      const plain = this.#cursor.take(BODY_PLAIN)
      if (plain === '') this.#expansion(parts)
      else parts.push(text(plain, true))
    }
    return parts
  }

  /** Up to `))`, both eaten. */
  arithmetic(): Word {
    const parts: Part[] = []
    let depth = 0
    const cursor = this.#cursor
    for (;;) {
      cursor.count()
      if (cursor.isAtEnd) throw new Unreadable('Nothing closes the arithmetic.')
      if (depth === 0 && cursor.eat('))')) return parts
      const char = cursor.peek()
      const plain = cursor.take(ARITHMETIC_PLAIN)
      if (plain !== '') parts.push(text(plain, true))
      else if ('()'.includes(char)) {
        depth += char === '(' ? 1 : -1
        cursor.at++
      } else this.#expansion(parts)
      if (depth < 0) throw new Unreadable('The arithmetic has a ")" too many.')
    }
  }

  /** Whether something was there. */
  #wordPart(parts: Part[]): boolean {
    const cursor = this.#cursor
    const plain = cursor.take(PLAIN)
    if (plain !== '') return parts.push(text(plain, false)) > 0
    const char = cursor.peek()
    if (END.has(char)) return false
    const read = this.#special[char]
    if (read !== undefined) return read(parts)
    return cursor.peek(1) === '(' ? this.#extendedGlob(parts) : this.#literal(parts)
  }

  readonly #special: Readonly<Record<string, (parts: Part[]) => boolean>> = {
    '\r': (parts) => this.#literal(parts),
    '<': (parts) => this.#cursor.peek(1) === '(' && this.#process(parts),
    '>': (parts) => this.#cursor.peek(1) === '(' && this.#process(parts),
    '\\': (parts) => this.#escaped(parts),
    "'": (parts) => this.#singleQuoted(parts),
    '"': (parts) => this.#doubleQuoted(parts),
    $: (parts) => this.#expansion(parts),
    '`': (parts) => this.#expansion(parts),
  }

  #literal(parts: Part[]): boolean {
    parts.push(text(this.#cursor.peek(), false))
    this.#cursor.at++
    return true
  }

  #escaped(parts: Part[]): boolean {
    const cursor = this.#cursor
    cursor.at++
    const char = cursor.peek()
    if (!cursor.isAtEnd) cursor.at++
    if (char !== '\n') parts.push(text(char, true))
    return true
  }

  #singleQuoted(parts: Part[]): boolean {
    this.#cursor.at++
    parts.push(text(this.#cursor.takeUntil("'"), true))
    return true
  }

  #doubleQuoted(parts: Part[]): boolean {
    const cursor = this.#cursor
    cursor.require('"')
    if (cursor.peek() === '"') parts.push(text('', true))
    while (!cursor.eat('"')) {
      cursor.count()
      if (cursor.isAtEnd) throw new Unreadable('Nothing closes the quote.')
      const plain = cursor.take(QUOTED_PLAIN)
      if (plain === '') this.#expansion(parts, true)
      else parts.push(text(plain, true))
    }
    return true
  }

  /** `\`, `$` or a backquote where most characters stand for themselves. */
  #expansion(parts: Part[], isQuoted = false): boolean {
    const cursor = this.#cursor
    if (cursor.peek() === '\\') return this.#escapedInQuotes(parts)
    cursor.count()
    if (cursor.peek() === '`') return parts.push({ kind: 'output', script: this.#backquoted(), isQuoted }) > 0
    cursor.at++
    if (cursor.peek() === '(')
      return parts.push(cursor.startsWith('((') ? this.#arithmeticOrOutput(isQuoted) : this.#output(isQuoted)) > 0
    if (cursor.peek() === '{') return parts.push(cursor.nested(() => this.#braced(isQuoted))) > 0
    if (!isQuoted && cursor.peek() === "'") return this.#ansiQuoted(parts)
    if (!isQuoted && cursor.peek() === '"') return this.#doubleQuoted(parts)
    const name = cursor.take(SHORT_NAME)
    parts.push(name === '' ? text('$', isQuoted) : { kind: 'parameter', name, operator: '', operand: [], isQuoted })
    return true
  }

  #escapedInQuotes(parts: Part[]): boolean {
    const cursor = this.#cursor
    const char = cursor.peek(1)
    cursor.at += char === '' ? 1 : 2
    if (char === '\n') return true
    parts.push(text('$`"\\'.includes(char) && char !== '' ? char : `\\${char}`, true))
    return true
  }

  #ansiQuoted(parts: Part[]): boolean {
    const cursor = this.#cursor
    cursor.at++
    const raw = cursor.take(/(?:[^'\\]|\\[^])*/y)
    cursor.require("'")
    parts.push(text(decodeAnsi(raw), true))
    return true
  }

  #output(isQuoted: boolean): Part {
    this.#cursor.require('(')
    const script = this.#cursor.nested(() => this.#readNested(this.#cursor, 'until-parenthesis'))
    return { kind: 'output', script, isQuoted }
  }

  /** `$((` begins arithmetic, or a command in parentheses: only its end tells. */
  #arithmeticOrOutput(isQuoted: boolean): Part {
    const cursor = this.#cursor
    return cursor.either<Part>(
      () => {
        cursor.require('((')
        return { kind: 'arithmetic', word: this.arithmetic() }
      },
      () => this.#output(isQuoted),
    )
  }

  #backquoted(): Script {
    const cursor = this.#cursor
    cursor.at++
    cursor.count(BACKQUOTED)
    const raw = cursor.take(/(?:[^`\\]|\\[^])*/y)
    cursor.require('`')
    const inner = raw.replaceAll(/\\([$`\\])/gu, '$1')
    return cursor.nested(() => this.#readNested(cursor.inner(inner), 'whole'))
  }

  #process(parts: Part[]): boolean {
    this.#cursor.at += 2
    const script = this.#cursor.nested(() => this.#readNested(this.#cursor, 'until-parenthesis'))
    parts.push({ kind: 'process', script })
    return true
  }

  /** `${…}`: the name, what is done with it, and the word for that. */
  #braced(isQuoted: boolean): Part {
    const cursor = this.#cursor
    cursor.require('{')
    const prefix = this.#prefix()
    const name = cursor.take(NAME)
    if (name === '') throw new Unreadable('A parameter has no name.')
    const index = cursor.eat('[') ? cursor.takeUntil(']') : undefined
    const operator = prefix || cursor.take(OPERATOR)
    const operand = this.#operand()
    if (index !== undefined)
      return {
        kind: 'parameter',
        name,
        operator: operator === '' ? '[' : 'other',
        operand: [text(index, true)],
        isQuoted,
      }
    return { kind: 'parameter', name, operator, operand, isQuoted }
  }

  /** `#` and `!` before a name count it and go through it; alone they are names. */
  #prefix(): string {
    const cursor = this.#cursor
    const isBefore = /[A-Za-z_0-9@*]/u.test(cursor.peek(1))
    if (isBefore && cursor.eat('#')) return 'length'
    return isBefore && cursor.eat('!') ? 'indirect' : ''
  }

  #operand(): Word {
    const cursor = this.#cursor
    const parts: Part[] = []
    while (!cursor.eat('}')) {
      cursor.count()
      if (cursor.isAtEnd) throw new Unreadable('Nothing closes the parameter.')
      const plain = cursor.take(OPERAND_PLAIN)
      if (plain !== '') parts.push(text(plain, false))
      else if (cursor.peek() === "'") this.#singleQuoted(parts)
      else if (cursor.peek() === '"') this.#doubleQuoted(parts)
      else if (cursor.peek() === '\\') this.#escaped(parts)
      else this.#expansion(parts)
    }
    return parts
  }

  /** `@(a|b)` and its like: a glob. */
  #extendedGlob(parts: Part[]): boolean {
    const cursor = this.#cursor
    const begin = cursor.at
    let depth = 0
    do {
      const char = cursor.peek()
      if (char === '') throw new Unreadable('Nothing closes the glob.')
      if (char === '(') depth++
      if (char === ')') depth--
      cursor.at++
    } while (depth > 0 || cursor.at <= begin + 1)
    cursor.count((cursor.at - begin) / CHARACTERS_PER_STEP)
    parts.push(text(cursor.text.slice(begin, cursor.at), false))
    return true
  }
}

function text(content: string, isQuoted: boolean): Part {
  return { kind: 'text', text: content, isQuoted }
}
