import { AirlockError } from '@airlock/contract'

/** A member of the object: its value, or `nested` for an object or an array, or `long` for a text above the bound. */
export type Member = { readonly scalar: unknown } | 'nested' | 'long'

/** Enough for every name and value that is compared. */
const KEPT_BYTES = 512
const MAX_DEPTH = 256

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const MINUS = 0x2d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const SPACE = 0x20

/** Position in the grammar of RFC 8259. */
type State =
  | 'start'
  | 'value'
  | 'value or end'
  | 'name'
  | 'name or end'
  | 'colon'
  | 'comma or end'
  | 'string'
  | 'escape'
  | 'unicode'
  | 'literal'
  | 'minus'
  | 'zero'
  | 'integer'
  | 'point'
  | 'fraction'
  | 'exponent'
  | 'sign'
  | 'power'
  | 'done'

/**
 * Reads the top members of a JSON object as it arrives, and refuses anything that RFC 8259 refuses. Time is linear and
 * memory does not grow with the body, so a hostile body holds nobody up. Strict, because a lenient reader upstream may find
 * other members in text that is almost JSON.
 */
export class TopLevel {
  readonly #members = new Map<string, Member>()
  /** Open containers: true for an object, false for an array. */
  readonly #open: boolean[] = []
  #state: State = 'start'
  /** Hexadecimal digits still due in an escape. */
  #digits = 0
  /** The rest of `true`, `false` or `null`. */
  #literal = ''
  #isName = false
  #name = ''
  /** The bytes of a name or of a scalar at the top; undefined elsewhere, and above the bound. */
  #kept: number[] | undefined

  /** Throws `invalid_request` at the first byte that JSON does not have there. */
  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#state === 'string') at = this.#passText(chunk, at)
      if (at < chunk.length) this.#take(chunk[at] ?? 0)
    }
  }

  /** The members, once everything was pushed. */
  end(): ReadonlyMap<string, Member> {
    if (this.#state !== 'done') throw notJson()
    return this.#members
  }

  /** Skips the plain part of a string, which is most of a body. Answers where that part ends. */
  #passText(chunk: Uint8Array, from: number): number {
    let at = from
    for (; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0
      if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) break
    }
    if (this.#kept !== undefined) for (const byte of chunk.subarray(from, at)) this.#keep(byte)
    return at
  }

  #take(byte: number): void {
    if (this.#state === 'string') return this.#takeInString(byte)
    if (this.#state === 'escape' || this.#state === 'unicode') return this.#takeEscape(byte)
    if (this.#state === 'literal') return this.#takeLiteral(byte)
    if (this.#takeInNumber(byte)) return
    if (this.#state === 'start') {
      // No space before it: members of ours are inserted right behind this byte.
      if (byte !== OPEN_OBJECT) throw notJson()
      this.#enter(true)
    } else if (!isSpace(byte)) this.#takeToken(byte)
  }

  /** False when the byte is not of a number; one that it ends has ended. */
  #takeInNumber(byte: number): boolean {
    const grammar = NUMBER[this.#state]
    if (grammar === undefined) return false
    const kind = classOf(byte)
    const next = kind && grammar[kind]
    if (next === undefined) {
      if (!MAY_END.has(this.#state)) throw notJson()
      this.#endValue()
      return false
    }
    this.#keep(byte)
    this.#state = next
    return true
  }

  #takeToken(byte: number): void {
    if (this.#state === 'done') throw notJson()
    if (this.#state === 'colon') {
      if (byte !== COLON) throw notJson()
      this.#state = 'value'
    } else if (this.#state === 'comma or end') {
      if (byte === COMMA) this.#state = this.inObject ? 'name' : 'value'
      else this.#leave(byte)
    } else if (this.#state === 'name' || this.#state === 'name or end') this.#beginName(byte)
    else if (this.#state === 'value or end' && byte === CLOSE_ARRAY) this.#leave(byte)
    else this.#beginValue(byte)
  }

  #beginName(byte: number): void {
    if (byte === QUOTE) this.#beginString(true)
    else if (this.#state === 'name or end') this.#leave(byte)
    else throw notJson()
  }

  private get inObject(): boolean {
    return this.#open.at(-1) === true
  }

  #beginValue(byte: number): void {
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (this.#open.length === 1) this.#set('nested')
      return this.#enter(byte === OPEN_OBJECT)
    }
    if (byte === QUOTE) return this.#beginString(false)
    this.#kept = this.#open.length === 1 ? [byte] : undefined
    const literal = LITERALS[byte]
    if (literal !== undefined) {
      this.#literal = literal
      this.#state = 'literal'
    } else if (byte === MINUS) this.#state = 'minus'
    else if (byte === 0x30) this.#state = 'zero'
    else if (isDigit(byte)) this.#state = 'integer'
    else throw notJson()
  }

  #enter(isObject: boolean): void {
    if (this.#open.length >= MAX_DEPTH) throw new AirlockError('invalid_request', 'The body is nested too deeply.')
    this.#open.push(isObject)
    this.#state = isObject ? 'name or end' : 'value or end'
  }

  #leave(byte: number): void {
    if (byte !== (this.inObject ? CLOSE_OBJECT : CLOSE_ARRAY)) throw notJson()
    this.#open.pop()
    this.#state = this.#open.length === 0 ? 'done' : 'comma or end'
  }

  #beginString(isName: boolean): void {
    this.#isName = isName
    this.#kept = this.#open.length === 1 ? [QUOTE] : undefined
    this.#state = 'string'
  }

  #takeInString(byte: number): void {
    if (byte < SPACE) throw notJson()
    this.#keep(byte)
    if (byte === BACKSLASH) this.#state = 'escape'
    else if (byte === QUOTE) this.#endString()
  }

  #endString(): void {
    if (!this.#isName) return this.#endValue()
    if (this.#open.length === 1) this.#setName()
    this.#state = 'colon'
  }

  #takeEscape(byte: number): void {
    this.#keep(byte)
    if (this.#state === 'unicode') {
      if (!isHex(byte)) throw notJson()
      this.#digits -= 1
      if (this.#digits === 0) this.#state = 'string'
    } else if (byte === 0x75) {
      this.#digits = 4
      this.#state = 'unicode'
    } else if (ESCAPES.has(byte)) this.#state = 'string'
    else throw notJson()
  }

  #takeLiteral(byte: number): void {
    if (byte !== this.#literal.charCodeAt(0)) throw notJson()
    this.#keep(byte)
    this.#literal = this.#literal.slice(1)
    if (this.#literal === '') this.#endValue()
  }

  #endValue(): void {
    if (this.#open.length === 1) this.#set(this.#kept === undefined ? 'long' : { scalar: this.#parseKept() })
    this.#state = 'comma or end'
  }

  #setName(): void {
    const name = this.#kept === undefined ? undefined : this.#parseKept()
    if (typeof name !== 'string') throw new AirlockError('invalid_request', 'The body has a name that is too long.')
    if (this.#members.has(name)) throw new AirlockError('invalid_request', `The body names ${name} twice.`)
    this.#name = name
  }

  #set(member: Member): void {
    this.#members.set(this.#name, member)
  }

  #keep(byte: number): void {
    if (this.#kept === undefined) return
    if (this.#kept.length < KEPT_BYTES) this.#kept.push(byte)
    else this.#kept = undefined
  }

  #parseKept(): unknown {
    return JSON.parse(Buffer.from(this.#kept ?? []).toString('utf8'))
  }
}

/** The rest of a literal, by its first letter. */
const LITERALS: Readonly<Record<number, string>> = { 0x74: 'rue', 0x66: 'alse', 0x6e: 'ull' }
/** Letters that may follow a backslash, beside `u`. */
const ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'))

type ByteClass = 'zero' | 'digit' | 'point' | 'e' | 'sign'

/** The grammar of numbers in RFC 8259: what a byte makes of a state. */
const NUMBER: Partial<Readonly<Record<State, Partial<Readonly<Record<ByteClass, State>>>>>> = {
  minus: { zero: 'zero', digit: 'integer' },
  zero: { point: 'point', e: 'exponent' },
  integer: { zero: 'integer', digit: 'integer', point: 'point', e: 'exponent' },
  point: { zero: 'fraction', digit: 'fraction' },
  fraction: { zero: 'fraction', digit: 'fraction', e: 'exponent' },
  exponent: { zero: 'power', digit: 'power', sign: 'sign' },
  sign: { zero: 'power', digit: 'power' },
  power: { zero: 'power', digit: 'power' },
}
const MAY_END: ReadonlySet<State> = new Set(['zero', 'integer', 'fraction', 'power'])

function classOf(byte: number): ByteClass | undefined {
  if (byte === 0x30) return 'zero'
  if (isDigit(byte)) return 'digit'
  if (byte === 0x2e) return 'point'
  if (byte === 0x65 || byte === 0x45) return 'e'
  return byte === MINUS || byte === 0x2b ? 'sign' : undefined
}

function isSpace(byte: number): boolean {
  return byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

function isHex(byte: number): boolean {
  return isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)
}

function notJson(): AirlockError {
  return new AirlockError('invalid_request', 'The body is not a JSON object.')
}
