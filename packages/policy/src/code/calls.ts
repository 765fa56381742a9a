import { UNKNOWN } from '../path.ts'
import type { Call } from '../reading.ts'
import type { Token } from './tokens.ts'

const MAX_DEPTH = 32
/** What a call costs for each token in it. */
const OPEN = 0.15
/** What rules will have to look at. */
const CALL = 1
/** Languages in which a call needs no parentheses. */
const BARE = new Set(['perl', 'ruby', 'php', 'lua'])

interface Open {
  readonly name: string
  readonly strings: string[]
  readonly within: string[]
  /** Parentheses that were open before it. */
  readonly depth: number
  /** The next string goes on with the last one: `'a' + 'b'`. */
  isJoined: boolean
  /** It is the value of a named argument. */
  isNamed: boolean
}

/** The functions that are called, each with its literal strings, those in lists included. */
export function findCalls(runtime: string, tokens: readonly Token[], spend: (work: number) => void): readonly Call[] {
  const calls: Call[] = []
  const open: Open[] = []
  let depth = 0
  for (const [at, token] of tokens.entries()) {
    spend((1 + open.length) * OPEN)
    const next = tokens[at + 1]
    if (token.kind === 'name') {
      meet(open, token.text)
      if (isOpening(next) && open.length < MAX_DEPTH) {
        spend(CALL)
        open.push(begin(nameOf(tokens, at), depth))
      } else if (BARE.has(runtime) && next?.kind === 'string') calls.push(bare(token.text, tokens, at + 1))
      else unknownIn(open)
    } else if (token.kind === 'string') {
      if (token.isCommand) calls.push({ name: 'system', strings: [token.text], within: [] })
      for (const call of open) addString(call, token.text)
    } else depth = mark(token.text, { open, calls, depth })
  }
  return [...calls, ...open]
}

function isOpening(token: Token | undefined): boolean {
  return token?.kind === 'mark' && token.text === '('
}

function begin(name: string, depth: number): Open {
  return { name, strings: [], within: [], depth, isJoined: false, isNamed: false }
}

/** `require('x').exec`: what hangs on a call has its own name alone. */
function nameOf(tokens: readonly Token[], at: number): string {
  const token = tokens[at]
  return token === undefined ? '' : token.text.replace(/^\./u, '')
}

function meet(open: readonly Open[], name: string): void {
  for (const call of open) call.within.push(name)
}

/** A variable among the strings: the argument is there, but not known. */
function unknownIn(open: readonly Open[]): void {
  const inner = open.at(-1)
  if (inner?.isJoined !== true) return
  inner.isJoined = false
  inner.strings.push(`${inner.strings.pop() ?? ''}${UNKNOWN}`)
}

function addString(call: Open, text: string): void {
  if (call.isNamed) call.isNamed = false
  else if (call.isJoined && call.strings.length > 0) call.strings.push(`${call.strings.pop() ?? ''}${text}`)
  else call.strings.push(text)
  call.isJoined = false
}

function mark(
  text: string,
  { open, calls, depth }: { readonly open: Open[]; readonly calls: Call[]; readonly depth: number },
): number {
  for (const call of open) {
    call.isJoined = text === '+' || (call.isJoined && text === '(')
    call.isNamed = text === '='
  }
  if (text === '(') return depth + 1
  if (text !== ')') return depth
  const last = open.at(-1)
  if (last !== undefined && last.depth === depth - 1) {
    calls.push(last)
    open.pop()
  }
  return Math.max(0, depth - 1)
}

function bare(name: string, tokens: readonly Token[], begin: number): Call {
  const strings: string[] = []
  for (let at = begin; at < tokens.length && at < begin + 32; at++) {
    const token = tokens[at]
    if (token?.kind === 'string') strings.push(token.text)
    else if (token?.kind !== 'mark' || token.text !== ',') break
  }
  return { name, strings, within: [] }
}
