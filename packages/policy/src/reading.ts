import type { Trait } from '@airlock/contract'
import { normalisePath, showUnknown, UNKNOWN, UNKNOWN_WORDS } from './path.ts'
import { writtenPlaces } from './writers.ts'

/** What was understood of a command or of code: everything that it would start, and the code in it. */
export interface Reading {
  readonly invocations: readonly Invocation[]
  readonly codes: readonly CodeText[]
  /** Counted steps that it took. */
  readonly work: number
}

/** Code of an interpreter, as far as it was read. */
export interface CodeText {
  readonly runtime: string
  readonly code: string
  readonly calls: readonly Call[]
}

/** A function that is called. */
export interface Call {
  /** As it is written: `os.system`. */
  readonly name: string
  /** Its literal strings. */
  readonly strings: readonly string[]
  /** What is called among its arguments. */
  readonly within: readonly string[]
}

export interface InvocationFacts {
  /** Its name without directories; empty when it is not known. */
  readonly program: string
  /** What follows the program; what is not known in them is UNKNOWN. */
  readonly words: readonly string[]
  /** Exact, or with UNKNOWN in it. */
  readonly cwd: string
  readonly redirects?: { readonly reads: readonly string[]; readonly writes: readonly string[] }
  readonly assigns?: readonly string[]
  /** It interprets what these programs write. */
  readonly runsOutputOf?: readonly string[]
  /** The programs whose output comes in. */
  readonly inputFrom?: readonly string[]
  readonly traits?: readonly Trait[]
  /** It only starts what was read of it, or was written inside of code: no rule has to cover it. */
  readonly isCovered?: boolean
}

const NONE: readonly string[] = []

/** One program that would be started. What rules look at is worked out when the first of them asks. */
export class Invocation {
  readonly program: string
  readonly words: readonly string[]
  readonly assigns: readonly string[]
  readonly runsOutputOf: readonly string[]
  readonly inputFrom: readonly string[]
  readonly traits: readonly Trait[]
  readonly isCovered: boolean
  readonly #facts: InvocationFacts
  readonly #cwd: string
  readonly #redirects: { readonly reads: readonly string[]; readonly writes: readonly string[] }
  #split: { readonly flags: readonly string[]; readonly positionals: readonly string[] } | undefined
  #paths: readonly string[] | undefined
  #writes: readonly string[] | undefined
  #text: string | undefined
  #shown: readonly string[] | undefined

  constructor(facts: InvocationFacts) {
    this.#facts = facts
    this.program = facts.program
    this.words = facts.words
    this.assigns = facts.assigns ?? NONE
    this.runsOutputOf = facts.runsOutputOf ?? NONE
    this.inputFrom = facts.inputFrom ?? NONE
    this.traits = facts.traits ?? []
    this.isCovered = facts.isCovered ?? false
    this.#cwd = facts.cwd
    this.#redirects = facts.redirects ?? { reads: NONE, writes: NONE }
  }

  /** The same, where no rule has to cover it. */
  covered(): Invocation {
    return new Invocation({ ...this.#facts, isCovered: true })
  }

  /** `-rf` is `-rf`, `-r` and `-f`; `--x=y` is `--x`. */
  get flags(): readonly string[] {
    this.#split ??= splitFlags(this.words)
    return this.#split.flags
  }

  get positionals(): readonly string[] {
    this.#split ??= splitFlags(this.words)
    return this.#split.positionals
  }

  /** The first word that is no flag; should that be the value of a flag, also the first that cannot be one. */
  get subcommands(): readonly string[] {
    const [first] = this.positionals
    const free = this.words.find((word, at) => !word.startsWith('-') && this.words[at - 1]?.startsWith('-') !== true)
    return [first, free].filter((word) => word !== undefined)
  }

  get paths(): readonly string[] {
    // What a shell is told to run is a line, and was read as one.
    const words = this.isCovered ? this.words.filter((word) => !word.includes(' ')) : this.words
    this.#paths ??= [...words.flatMap(pathsIn), ...this.#redirects.reads].map((path) => this.#exact(path))
    return this.#paths
  }

  get writes(): readonly string[] {
    this.#writes ??= [...this.#redirects.writes, ...writtenPlaces(this)].map((path) => this.#exact(path))
    return this.#writes
  }

  /** Its words as rules see them. */
  get shown(): readonly string[] {
    this.#shown ??= this.words.map(showUnknown)
    return this.#shown
  }

  get text(): string {
    this.#text ??= [this.program, ...this.shown].join(' ')
    return this.#text
  }

  #exact(path: string): string {
    return showUnknown(normalisePath(path, this.#cwd))
  }
}

function splitFlags(words: readonly string[]): { flags: readonly string[]; positionals: readonly string[] } {
  const flags: string[] = []
  const positionals: string[] = []
  let areOver = false
  for (const word of words) {
    if (areOver || !word.startsWith('-') || word === '-') positionals.push(word)
    else if (word === '--') areOver = true
    else if (word.startsWith('--')) flags.push(word.split('=', 1)[0] ?? word)
    else flags.push(word, ...letters(word))
  }
  return { flags, positionals }
}

function letters(word: string): readonly string[] {
  if (word.length === 2) return NONE
  return Array.from(word.slice(1, 9), (letter) => `-${letter}`)
}

/** The paths that a word may name: itself, a value after `=` or `@`, or what a short flag is glued to. */
function pathsIn(word: string): readonly string[] {
  if (word === '') return NONE
  if (word.startsWith('-')) {
    const value = /^(?:--?[\w-]+=|-[A-Za-z](?=[/~]))@?(.+)$/su.exec(word)?.[1]
    return value === undefined ? NONE : [value]
  }
  const value = /^(?:[\w.-]+=@?|@)(.+)$/su.exec(word)?.[1]
  if (value !== undefined) return [word, value]
  const local = /^(?:file:\/\/|UNIX[A-Z-]*:)(\/.*)$/su.exec(word)?.[1]
  return local === undefined ? [word] : [local]
}

export function isKnown(text: string): boolean {
  return !text.includes(UNKNOWN) && !text.includes(UNKNOWN_WORDS)
}
