import { type Automaton, isWordCharacter, runAutomaton, type State } from './automaton.ts'
import { rememberAutomaton } from './remembering.ts'

/** A pattern that is accepted: it reads a text once, in at most `states` steps per character. */
export interface Pattern {
  readonly states: number
  matches(text: string): boolean
  /** How many steps it took: what the bound is proven by. */
  countSteps(text: string): number
}

/** Why a pattern is refused. */
export class PatternError extends SyntaxError {}

const MAX_STATES = 1000
const MAX_REPEAT = 64
const MAX_DEPTH = 8

/**
 * A part of regular expressions: characters, classes, `.`, `\d \w \s \b`, `^ $`, groups, `|`, and `* + ? {n,m}` of single
 * characters. A group may be optional but not repeat, and there are no references and no lookaround. Throws PatternError.
 */
export function compilePattern(source: string): Pattern {
  const builder = new Builder(source)
  const automaton = builder.build()
  const literal = builder.literal
  const matches = rememberAutomaton(automaton)
  return {
    states: automaton.states.length,
    matches: (text) => (literal === '' || text.includes(literal)) && matches(text),
    countSteps: (text) => {
      let steps = 0
      runAutomaton(automaton, text, () => steps++)
      return steps
    },
  }
}

type Test = (code: number) => boolean

type Node =
  | { readonly kind: 'test'; readonly test: Test }
  | { readonly kind: 'at'; readonly place: 'start' | 'end' | 'boundary' }
  | { readonly kind: 'sequence'; readonly nodes: readonly Node[] }
  | { readonly kind: 'either'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeat'; readonly node: Node; readonly min: number; readonly max: number }

class Builder {
  readonly #source: string
  #at = 0
  readonly #states: State[] = []
  /** Characters that stand outside of groups and are not repeated: a text without them cannot match. */
  literal = ''
  #run = ''

  constructor(source: string) {
    this.#source = source
  }

  build(): Automaton {
    const tree = this.#alternatives(0)
    if (this.#at < this.#source.length) throw new PatternError('has a ")" too many')
    if (tree.kind === 'either') this.literal = ''
    const found = this.#add({ kind: 'found' })
    return { start: this.#lead(tree, found), states: this.#states, isWhole: false }
  }

  #alternatives(depth: number): Node {
    if (depth > MAX_DEPTH) throw new PatternError(`has groups deeper than ${MAX_DEPTH}`)
    const nodes = [this.#sequence(depth)]
    while (this.#eat('|')) nodes.push(this.#sequence(depth))
    const [only] = nodes
    return nodes.length === 1 && only !== undefined ? only : { kind: 'either', nodes }
  }

  #sequence(depth: number): Node {
    const nodes: Node[] = []
    while (this.#at < this.#source.length && !'|)'.includes(this.#peek())) {
      const begin = this.#at
      const atom = this.#atom(depth)
      const node = this.#quantified(atom)
      nodes.push(node)
      if (depth === 0) this.#noteLiteral(node, this.#source.slice(begin, this.#at))
    }
    if (depth === 0) this.#endRun()
    return { kind: 'sequence', nodes }
  }

  #noteLiteral(node: Node, text: string): void {
    if (node.kind === 'test' && (/^[^\\.[]$/u.test(text) || /^\\[^\w]$/u.test(text))) this.#run += text.at(-1)
    else this.#endRun()
  }

  #endRun(): void {
    if (this.#run.length > this.literal.length) this.literal = this.#run
    this.#run = ''
  }

  #atom(depth: number): Node {
    const char = this.#next()
    if (char === '(') return this.#group(depth)
    if (char === '[') return { kind: 'test', test: this.#characterClass() }
    if (char === '^') return { kind: 'at', place: 'start' }
    if (char === '$') return { kind: 'at', place: 'end' }
    if (char === '.') return { kind: 'test', test: (code) => code !== 10 && code !== 13 }
    if ('*+?{'.includes(char)) throw new PatternError(`repeats nothing at "${char}"`)
    if (char === '\\' && this.#eat('b')) return { kind: 'at', place: 'boundary' }
    return { kind: 'test', test: char === '\\' ? this.#escape() : is(char.charCodeAt(0)) }
  }

  #group(depth: number): Node {
    if (this.#eat('?') && !this.#eat(':')) throw new PatternError('looks around or names a group')
    const inner = this.#alternatives(depth + 1)
    if (!this.#eat(')')) throw new PatternError('has a "(" too many')
    return { kind: 'either', nodes: [inner] }
  }

  #quantified(node: Node): Node {
    const bounds = this.#quantifier()
    if (bounds === undefined) return node
    this.#eat('?')
    if ('*+?{'.includes(this.#peek() || ' ')) throw new PatternError('repeats a repetition')
    if (node.kind === 'test' || (bounds.min === 0 && bounds.max === 1)) return { kind: 'repeat', node, ...bounds }
    throw new PatternError('repeats a group or a place: it could run away')
  }

  #quantifier(): { min: number; max: number } | undefined {
    if (this.#eat('*')) return { min: 0, max: Infinity }
    if (this.#eat('+')) return { min: 1, max: Infinity }
    if (this.#eat('?')) return { min: 0, max: 1 }
    if (this.#peek() !== '{') return undefined
    const counts = /^\{(\d{1,3})(?:(,)(\d{1,3})?)?\}/u.exec(this.#source.slice(this.#at, this.#at + 10))
    if (counts === null) throw new PatternError('has a "{" that counts nothing')
    this.#at += counts[0].length
    const min = Number(counts[1])
    const max = counts[2] === undefined ? min : counts[3] === undefined ? Infinity : Number(counts[3])
    if (min > MAX_REPEAT || (max !== Infinity && max > MAX_REPEAT))
      throw new PatternError(`counts beyond ${MAX_REPEAT}`)
    if (min > max) throw new PatternError('counts down')
    return { min, max }
  }

  #escape(): Test {
    const char = this.#next()
    const named = CLASSES[char]
    if (named !== undefined) return named
    const control = CONTROLS[char]
    if (control !== undefined) return is(control)
    if (/[\dk]/u.test(char)) throw new PatternError('refers to a group')
    if (/\w/u.test(char)) throw new PatternError(`has an escape that is not known, "\\${char}"`)
    return is(char.charCodeAt(0))
  }

  #characterClass(): Test {
    const isNegated = this.#eat('^')
    const tests: Test[] = []
    while (!this.#eat(']')) tests.push(this.#classItem())
    if (tests.length === 0) throw new PatternError('has an empty class')
    return (code) => tests.some((test) => test(code)) !== isNegated
  }

  #classItem(): Test {
    const char = this.#next()
    const isRange = this.#peek() === '-' && this.#source[this.#at + 1] !== ']'
    if (char === '\\') return this.#escape()
    if (!isRange) return is(char.charCodeAt(0))
    this.#at++
    const first = char.charCodeAt(0)
    const last = this.#next().charCodeAt(0)
    if (last < first) throw new PatternError('has a range that goes down')
    return (code) => code >= first && code <= last
  }

  /** States for the tree that lead to `next`; where they begin. */
  #lead(node: Node, next: number): number {
    if (node.kind === 'test') return this.#add({ kind: 'take', test: node.test, next })
    if (node.kind === 'at') return this.#add({ kind: 'at', place: node.place, next })
    if (node.kind === 'sequence') return node.nodes.reduceRight((to, part) => this.#lead(part, to), next)
    if (node.kind === 'either') return this.#either(node.nodes.map((part) => this.#lead(part, next)))
    return this.#repeat(node, next)
  }

  #either(ways: readonly number[]): number {
    return ways.reduceRight((second, first) => this.#add({ kind: 'either', first, second }))
  }

  #repeat({ node, min, max }: { node: Node; min: number; max: number }, next: number): number {
    let to = next
    if (max === Infinity && node.kind === 'test') {
      const loop = this.#add({ kind: 'found' })
      const body = this.#add({ kind: 'take', test: node.test, next: loop })
      this.#states[loop] = { kind: 'either', first: body, second: next }
      to = loop
    }
    const optional = max === Infinity ? 0 : max - min
    for (let count = 0; count < optional; count++)
      to = this.#add({ kind: 'either', first: this.#lead(node, to), second: next })
    for (let count = 0; count < min; count++) to = this.#lead(node, to)
    return to
  }

  #add(state: State): number {
    if (this.#states.length >= MAX_STATES) throw new PatternError('is too large')
    return this.#states.push(state) - 1
  }

  #peek(): string {
    return this.#source[this.#at] ?? ''
  }

  #next(): string {
    const char = this.#source[this.#at++]
    if (char === undefined) throw new PatternError('ends too early')
    return char
  }

  #eat(char: string): boolean {
    if (this.#source[this.#at] !== char) return false
    this.#at++
    return true
  }
}

function is(wanted: number): Test {
  return (code) => code === wanted
}

const isDigit: Test = (code) => code >= 48 && code <= 57
const isSpace: Test = (code) => code === 32 || (code >= 9 && code <= 13) || code === 0xa0
const CLASSES: Readonly<Record<string, Test>> = {
  d: isDigit,
  D: (code) => !isDigit(code),
  w: isWordCharacter,
  W: (code) => !isWordCharacter(code),
  s: isSpace,
  S: (code) => !isSpace(code),
}
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11 }
