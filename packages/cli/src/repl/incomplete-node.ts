import { Script } from 'node:vm'

/** Whether more lines belong to it. Types are unknown to the parser here, so that brackets are counted first. */
export function isIncompleteNode(code: string): boolean {
  const { open, rest } = scan(code)
  if (open) return true
  const text = rest.trimEnd()
  return text !== '' && (ENDS_OPEN.test(text) || endsTooEarly(code))
}

/** An operator that wants something after it; `>` and `/` may also end a type and a pattern. */
const ENDS_OPEN = /(?:=>|&&|\|\||\?\?|[=,.*%&|^?]|(?<!\+)\+|(?<!-)-)$/

function endsTooEarly(code: string): boolean {
  try {
    // Compiled, never run.
    void new Script(code)
    return false
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    return message === 'Unexpected end of input' || message === 'Missing catch or finally after try'
  }
}

interface Scan {
  /** A bracket, template or comment is not closed at the end. */
  readonly open: boolean
  /** The code without comments, strings and patterns. */
  readonly rest: string
}

function scan(code: string): Scan {
  /** What is open: brackets, and a backtick for a template in whose `${` we are. */
  const stack: string[] = []
  let rest = ''
  let at = 0
  while (at < code.length) {
    const char = code[at] ?? ''
    const skipped = goesOnTemplate(stack, char) ? skipTemplate(code, at + 1) : skip(code, { at, before: rest })
    if (skipped === undefined) return { open: true, rest }
    if (skipped.at === at) count(stack, char)
    if (skipped.inside) stack.push('`')
    rest += skipped.at === at ? char : skipped.text
    at = Math.max(skipped.at, at + 1)
  }
  return { open: stack.length > 0, rest }
}

/** At the beginning of a template, or after a `${…}` of one. */
function goesOnTemplate(stack: string[], char: string): boolean {
  if (char === '`') return true
  return char === '}' && stack.at(-1) === '`' && stack.pop() !== undefined
}

function count(stack: string[], char: string): void {
  if ('([{'.includes(char)) stack.push(char)
  else if (')]}'.includes(char)) stack.pop()
}

interface Skipped {
  readonly at: number
  /** What stands for it: nothing for a comment, a word for a value. */
  readonly text: string
  /** In a `${` of a template. */
  readonly inside: boolean
}

function skipTemplate(code: string, from: number): Skipped | undefined {
  for (let at = from; at < code.length; at++) {
    if (code[at] === '\\') at++
    else if (code[at] === '`') return { at: at + 1, text: '_', inside: false }
    else if (code.startsWith('${', at)) return { at: at + 2, text: '', inside: true }
  }
  return undefined
}

/** Past a comment, string or pattern; where it is when there is none; undefined when it does not end. */
function skip(code: string, { at, before }: { readonly at: number; readonly before: string }): Skipped | undefined {
  const here = { at, text: '', inside: false }
  if (code.startsWith('//', at)) {
    const end = code.indexOf('\n', at)
    return { ...here, at: end === -1 ? code.length : end }
  }
  if (code.startsWith('/*', at)) {
    const end = code.indexOf('*/', at + 2)
    return end === -1 ? undefined : { ...here, at: end + 2 }
  }
  const char = code[at] ?? ''
  if (char === '"' || char === "'") return { ...here, at: skipString(code, at + 1, char), text: '_' }
  if (char === '/' && !/[\w$)\]}]\s*$/.test(before)) return { ...here, at: skipPattern(code, at + 1), text: '_' }
  return here
}

/** One that does not end on its line is an error, unless the line is continued. */
function skipString(code: string, from: number, quote: string): number {
  for (let at = from; at < code.length; at++) {
    if (code[at] === '\\') at++
    else if (code[at] === quote) return at + 1
    else if (code[at] === '\n') return at
  }
  return code.length
}

function skipPattern(code: string, from: number): number {
  let inClass = false
  for (let at = from; at < code.length; at++) {
    const char = code[at]
    if (char === '\\') at++
    else if (char === '[') inClass = true
    else if (char === ']') inClass = false
    else if (char === '\n' || (char === '/' && !inClass)) return char === '/' ? at + 1 : at
  }
  return code.length
}
