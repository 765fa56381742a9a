const MAX_DEPTH = 64
/** Of a name or a number in a message. */
const SHOWN = 64

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * Why a text must not be given to `JSON.parse`, in one sentence: two readers could read it differently, or it is too deep.
 * Finds repeated names (also when escapes differ), depth above 64, numbers that a double cannot hold, and `__proto__`.
 * Looks at each character once. Texts that are not JSON are left to `JSON.parse`.
 */
export function findJsonFault(text: string): string | undefined {
  const walk = new Walk(text)
  for (let at = 0; at < text.length && walk.fault === undefined;) at = walk.step(at)
  return walk.fault
}

class Walk {
  readonly #text: string
  readonly #strings: StringEnds
  /** The names of each object that is open; null for an array. */
  readonly #open: (Set<string> | null)[] = []
  #isName = false
  fault: string | undefined

  constructor(text: string) {
    this.#text = text
    this.#strings = new StringEnds(text)
  }

  /** Where to go on. */
  step(at: number): number {
    const code = this.#text.charCodeAt(at)
    if (code === QUOTE) return this.#string(at + 1)
    if (code === MINUS || isDigit(code)) return this.#number(at)
    this.#mark(code)
    return at + 1
  }

  #mark(code: number): void {
    switch (code) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        if (this.#open.length === MAX_DEPTH) this.fault = `The body is nested deeper than ${MAX_DEPTH} levels.`
        this.#isName = code === OPEN_OBJECT
        this.#open.push(this.#isName ? new Set() : null)
        break
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        this.#open.pop()
        this.#isName = false
        break
      case COMMA:
        this.#isName = this.#open.at(-1) instanceof Set
        break
      case COLON:
        this.#isName = false
        break
      default:
    }
  }

  #string(from: number): number {
    const end = this.#strings.endOf(from)
    // Not JSON.
    if (end === -1) return this.#text.length
    if (this.#isName) this.fault = addName(this.#open.at(-1), this.#text.slice(from, end))
    return end + 1
  }

  #number(from: number): number {
    const end = endOfNumber(this.#text, from)
    this.fault = findNumberFault(this.#text.slice(from, end))
    return end
  }
}

/** Where strings end. Both searches only move forward, so that all of them together take the text's length. */
class StringEnds {
  readonly #text: string
  #quote = -1
  #backslash = -1

  constructor(text: string) {
    this.#text = text
  }

  /** Of the string whose first character is at `from`: its closing quote, or -1. */
  endOf(from: number): number {
    for (let at = from; ; at = this.#backslash + 2) {
      if (this.#quote < at) this.#quote = this.#find('"', at)
      if (this.#backslash < at) this.#backslash = this.#find('\\', at)
      if (this.#quote === Infinity) return -1
      if (this.#quote < this.#backslash) return this.#quote
    }
  }

  #find(character: string, from: number): number {
    const at = this.#text.indexOf(character, from)
    return at === -1 ? Infinity : at
  }
}

function addName(names: Set<string> | null | undefined, raw: string): string | undefined {
  const name = raw.includes('\\') ? unescape(raw) : raw
  if (name === '__proto__') return 'The body has a field "__proto__", which is never accepted.'
  if (names?.has(name)) return `The body names ${JSON.stringify(name.slice(0, SHOWN))} twice in one object.`
  names?.add(name)
  return undefined
}

function unescape(raw: string): string {
  try {
    return String(JSON.parse(`"${raw}"`))
  } catch {
    // Not JSON: `JSON.parse` refuses the whole text later.
    return raw
  }
}

function findNumberFault(digits: string): string | undefined {
  const value = Number(digits)
  const isExact = Number.isFinite(value) && (!/^-?\d+$/.test(digits) || Number.isSafeInteger(value))
  return isExact || Number.isNaN(value)
    ? undefined
    : `The number ${digits.slice(0, SHOWN)} in the body is too large; send it as a string.`
}

/** After a digit or a minus: everything that may belong to a number. */
function endOfNumber(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && isOfNumber(text.charCodeAt(at))) at++
  return at
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function isOfNumber(code: number): boolean {
  // + - . e E
  return isDigit(code) || code === 0x2b || code === MINUS || code === 0x2e || code === 0x45 || code === 0x65
}
