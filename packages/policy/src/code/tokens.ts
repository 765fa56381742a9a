import { UNKNOWN } from '../path.ts'

/** What matters of code: names with their dots, literal strings, and what groups them. */
export type Token =
  | { readonly kind: 'name'; readonly text: string }
  | { readonly kind: 'string'; readonly text: string; readonly isCommand: boolean }
  | { readonly kind: 'mark'; readonly text: string }

/** What reading one of them costs, and what a string costs beside. */
const TOKEN = 0.5
const STRING_TOKEN = 0.5
/** What begins nothing longer, in none of the languages. */
const MARKS = new Set('()[]{},+=')

const BLANKS = /[\s;]+/y
const NUMBER = /\d+(?:\.\d+)*/y
const NAME = /[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*){0,16}/y
const DOTTED = /(?:\.|::|->)[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*){0,16}/y
const TRIPLE = /[A-Za-z]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$))/y
const STRING = /[fFrRbBuU]{0,2}(?:"(?:[^"\\\n]|\\[^])*"?|'(?:[^'\\\n]|\\[^])*'?)/y
const TEMPLATE = /`(?:[^`\\]|\\[^])*`?/y
const QUOTING = /q[qx]?\s*[({[|/!]/y
const COMMENTS: Readonly<Record<string, RegExp>> = {
  node: /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/y,
  php: /\/\/[^\n]*|#[^\n]*|\/\*[^]*?(?:\*\/|$)/y,
  lua: /--[^\n]*/y,
}
const HASH_COMMENT = /#[^\n]*/y

/** Which it is matters to nobody. */
const A_NUMBER: Token = { kind: 'mark', text: '0' }

/** What is none of these is skipped. Throws what `spend` throws. */
export function tokenize(runtime: string, code: string, spend: (work: number) => void): readonly Token[] {
  const tokens: Token[] = []
  const comment = COMMENTS[runtime] ?? HASH_COMMENT
  let at = 0
  const skip = (count: number): void => {
    at += count
  }
  const take = (sticky: RegExp): string => {
    sticky.lastIndex = at
    const found = sticky.exec(code)?.[0] ?? ''
    at += found.length
    return found
  }
  while (at < code.length) {
    spend(TOKEN)
    if (take(BLANKS) !== '' || take(comment) !== '') continue
    if (take(NUMBER) !== '') {
      tokens.push(A_NUMBER)
      continue
    }
    const isMark = MARKS.has(code.charAt(at))
    const token = isMark
      ? undefined
      : (readToken(runtime, take) ?? readQuoting(runtime, code, { at: () => at, take, skip }))
    if (token?.kind === 'string') spend(STRING_TOKEN)
    if (token !== undefined) tokens.push(token)
    else {
      tokens.push({ kind: 'mark', text: code.charAt(at) })
      at++
    }
  }
  return tokens
}

function readToken(runtime: string, take: (sticky: RegExp) => string): Token | undefined {
  const triple = runtime === 'python' ? take(TRIPLE) : ''
  if (triple !== '') return stringToken(triple, { quote: 3, runtime })
  const quoted = take(STRING)
  if (quoted !== '') return stringToken(quoted, { quote: 1, runtime })
  const template = take(TEMPLATE)
  if (template !== '') return { ...stringToken(template, { quote: 1, runtime }), isCommand: runtime !== 'node' }
  if (runtime === 'perl' || runtime === 'ruby') return undefined
  return readName(take)
}

function readName(take: (sticky: RegExp) => string): Token | undefined {
  const name = take(NAME) || take(DOTTED)
  return name === '' ? undefined : { kind: 'name', text: name.replaceAll(/::|->/gu, '.') }
}

interface Place {
  readonly at: () => number
  readonly take: (sticky: RegExp) => string
  readonly skip: (count: number) => void
}

/** `qx(…)`, `q{…}` of Perl and `%x(…)` of Ruby, which begin as a name does. */
function readQuoting(runtime: string, code: string, { at, take, skip }: Place): Token | undefined {
  if (runtime !== 'perl' && runtime !== 'ruby') return undefined
  const opening = take(runtime === 'perl' ? QUOTING : /%[xq]\s*[({[|/!]/y)
  if (opening === '') return readName(take)
  const close = CLOSING[opening.at(-1) ?? ''] ?? opening.at(-1) ?? ''
  const end = code.indexOf(close, at())
  const text = code.slice(at(), end < 0 ? code.length : end)
  skip(text.length + (end < 0 ? 0 : 1))
  return { kind: 'string', text, isCommand: opening.includes('x') }
}

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '{': '}', '[': ']' }

function stringToken(
  raw: string,
  { quote, runtime }: { readonly quote: number; readonly runtime: string },
): Extract<Token, { kind: 'string' }> {
  const prefix = /^[A-Za-z]*/u.exec(raw)?.[0].toLowerCase() ?? ''
  const end = raw.length - (raw.endsWith(raw.charAt(prefix.length)) && raw.length > prefix.length + quote ? quote : 0)
  const body = raw.slice(prefix.length + quote, end)
  const text = prefix.includes('r') ? body : unescape(body)
  return {
    kind: 'string',
    text: interpolated(text, { prefix, runtime, quote: raw.charAt(prefix.length) }),
    isCommand: false,
  }
}

function unescape(body: string): string {
  if (!body.includes('\\')) return body
  return body.replaceAll(/\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^])/gu, (escape) => {
    const char = escape.charAt(1)
    if (escape.length > 3) return String.fromCodePoint(Number.parseInt(escape.slice(2), 16))
    return char === 'n' ? '\n' : char === 't' ? '\t' : char
  })
}

/** What is put in when it runs is not known. */
function interpolated(
  text: string,
  { prefix, runtime, quote }: { readonly prefix: string; readonly runtime: string; readonly quote: string },
): string {
  if (prefix.includes('f')) return text.replaceAll(/\{[^{}]*\}/gu, UNKNOWN)
  if (runtime === 'node') return quote === '`' ? text.replaceAll(/\$\{[^}]*\}/gu, UNKNOWN) : text
  if (runtime === 'ruby') return quote === "'" ? text : text.replaceAll(/#\{[^}]*\}/gu, UNKNOWN)
  if (runtime === 'perl' || runtime === 'php') return quote === "'" ? text : text.replaceAll(/[$@]\w+/gu, UNKNOWN)
  return text
}
