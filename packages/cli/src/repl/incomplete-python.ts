/** Words whose statement goes on until an empty line, as at the prompt of Python itself. */
const COMPOUND = /^(?:async|class|def|elif|else|except|finally|for|if|try|while|with)\b/
const OPENING = '([{'
const CLOSING = ')]}'

/** Whether more lines belong to it: an open bracket or string, a block, a decorator, a line that is continued. */
export function isIncompletePython(code: string): boolean {
  const { open, statements } = scan(code)
  if (open) return true
  const last = statements.at(-1)
  const endsBlank = /\n[^\S\n]*$/.test(code)
  if (last === undefined || endsBlank) return false
  return /^\s/.test(last) || last.endsWith(':') || last.startsWith('@') || COMPOUND.test(last)
}

interface Scan {
  /** Something that was opened is not closed at the end. */
  readonly open: boolean
  /** The lines as Python counts them, without comments and what is in strings; empty ones left out. */
  readonly statements: readonly string[]
}

function scan(code: string): Scan {
  const statements: string[] = []
  let statement = ''
  let depth = 0
  let at = 0
  const finish = (): void => {
    if (statement.trim() !== '') statements.push(statement.trimEnd())
    statement = ''
  }
  while (at < code.length) {
    const char = code[at] ?? ''
    const skipped = skip(code, at)
    if (skipped === undefined) return { open: true, statements }
    if (skipped > at) {
      statement += char === '#' ? '' : '_'
      at = skipped
      continue
    }
    if (OPENING.includes(char)) depth++
    if (CLOSING.includes(char)) depth = Math.max(0, depth - 1)
    if (char === '\n' && depth === 0) finish()
    else statement += char
    at++
  }
  finish()
  return { open: depth > 0, statements }
}

/** Past a comment, a string or a continued line; where it is when there is none; undefined when it does not end. */
function skip(code: string, at: number): number | undefined {
  const char = code[at] ?? ''
  if (char === '#') {
    const end = code.indexOf('\n', at)
    return end === -1 ? code.length : end
  }
  if (char === '\\' && (code[at + 1] ?? '\n') === '\n') return at + 2 >= code.length ? undefined : at + 2
  if (char !== '"' && char !== "'") return at
  return code.startsWith(char.repeat(3), at) ? skipLong(code, at + 3, char.repeat(3)) : skipShort(code, at + 1, char)
}

function skipLong(code: string, from: number, quotes: string): number | undefined {
  for (let at = from; at < code.length; at++) {
    if (code[at] === '\\') at++
    else if (code.startsWith(quotes, at)) return at + 3
  }
  return undefined
}

/** One that does not end on its line is an error, and Python says so: it does not wait for more. */
function skipShort(code: string, from: number, quote: string): number | undefined {
  for (let at = from; at < code.length; at++) {
    const char = code[at]
    if (char === '\\' && at + 1 >= code.length) return undefined
    if (char === '\\') at++
    else if (char === quote) return at + 1
    else if (char === '\n') return at
  }
  return code.length
}
