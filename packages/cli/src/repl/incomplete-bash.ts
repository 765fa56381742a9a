/** Whether more lines belong to it: an open quote, bracket, compound command or here-document, or a line that goes on. */
export function isIncompleteBash(code: string): boolean {
  return new BashScanner(code).isIncomplete()
}

const OPENS: Readonly<Record<string, string>> = {
  if: 'fi',
  case: 'esac',
  for: 'done',
  select: 'done',
  until: 'done',
  while: 'done',
  '{': '}',
}
const CLOSES: ReadonlySet<string> = new Set(Object.values(OPENS))
/** After these words the next one is a command again. */
const BEFORE_COMMAND = new Set(['!', 'do', 'elif', 'else', 'then', 'if', 'until', 'while', 'time', ...CLOSES, '{'])

class BashScanner {
  readonly #code: string
  /** What closes what is open, the innermost last. */
  readonly #stack: string[] = []
  #at = 0
  #word = ''
  /** The next word names a command, and may be one of the shell's own words. */
  #atCommand = true
  /** `function name` has no parentheses before its body. */
  #namesFunction = false
  #documents: string[] = []
  /** The last thing that was seen wants something after it. */
  #goesOn = false

  constructor(code: string) {
    this.#code = code
  }

  isIncomplete(): boolean {
    while (this.#at < this.#code.length) if (!this.#next()) return true
    this.#endWord()
    return this.#stack.length > 0 || this.#goesOn || this.#documents.length > 0
  }

  /** False when the code ends inside of something. */
  #next(): boolean {
    const char = this.#code[this.#at] ?? ''
    if (char === '\\') return this.#escape()
    const quote = this.#stack.at(-1)
    if (quote === '"') return this.#inQuotes(char)
    if (char === "'" || char === '`') return this.#skipTo(char)
    if (char === '"') return this.#openQuotes()
    if (this.#expands(char)) return this.#expand()
    if (char === '#' && this.#word === '') return this.#comment()
    return quote === '${}' ? this.#inParameter(char) : this.#plain(char)
  }

  #openQuotes(): boolean {
    this.#stack.push('"')
    this.#word += '_'
    this.#at++
    return true
  }

  #expands(char: string): boolean {
    return char === '$' && /[({]/.test(this.#code[this.#at + 1] ?? '')
  }

  #escape(): boolean {
    if (this.#at + 1 >= this.#code.length) return false
    if (this.#code[this.#at + 1] === '\n' && this.#at + 2 >= this.#code.length) return false
    this.#word += '_'
    this.#at += 2
    return true
  }

  #inQuotes(char: string): boolean {
    if (this.#expands(char)) return this.#expand()
    if (char === '`') return this.#skipTo('`')
    if (char === '"') this.#stack.pop()
    this.#at++
    return true
  }

  #inParameter(char: string): boolean {
    if (char === '}') this.#stack.pop()
    this.#at++
    return true
  }

  #skipTo(quote: string): boolean {
    const end = this.#code.indexOf(quote, this.#at + 1)
    if (end === -1) return false
    this.#word += '_'
    this.#at = end + 1
    return true
  }

  #expand(): boolean {
    const isCommand = this.#code[this.#at + 1] === '('
    this.#stack.push(isCommand ? ')' : '${}')
    if (isCommand) this.#atCommand = true
    this.#word = isCommand ? '' : `${this.#word}_`
    this.#goesOn = false
    this.#at += 2
    return true
  }

  #comment(): boolean {
    const end = this.#code.indexOf('\n', this.#at)
    this.#at = end === -1 ? this.#code.length : end
    return true
  }

  #plain(char: string): boolean {
    if (char === '\n') return this.#newline()
    if (/[\s;|&()<>]/.test(char)) this.#endWord()
    if (/[;|&()]/.test(char)) this.#operator(char)
    else if (char === '<') return this.#redirect()
    else if (/\S/.test(char)) {
      this.#word += char
      this.#goesOn = false
    }
    this.#at++
    return true
  }

  #newline(): boolean {
    this.#endWord()
    this.#atCommand = true
    this.#at++
    while (this.#documents.length > 0) {
      const [delimiter = ''] = this.#documents
      const rest = this.#code.slice(this.#at).split('\n')
      const length = rest.findIndex((line) => line.replace(/^\t+/, '') === delimiter)
      if (length === -1) return false
      this.#documents = this.#documents.slice(1)
      this.#at += rest.slice(0, length + 1).join('\n').length + 1
    }
    return true
  }

  #operator(char: string): void {
    const next = this.#code[this.#at + 1] ?? ''
    const isPair = (char === '|' || char === '&') && next === char
    if (isPair) this.#at++
    this.#goesOn = char === '|' || isPair
    if (char === '(') {
      this.#stack.push(')')
      this.#goesOn = next === ')'
    }
    if (char === ')' && this.#stack.at(-1) === ')') {
      this.#stack.pop()
      this.#goesOn = this.#code[this.#at - 1] === '('
    }
    this.#atCommand = true
  }

  /** `<<word` begins a here-document after this line; `<<<` does not. */
  #redirect(): boolean {
    const document = /^<<-?\s*(["']?)([\w./-]+)\1/.exec(this.#code.slice(this.#at))
    const isString = this.#code.startsWith('<<<', this.#at)
    if (document && !isString) this.#documents.push(document[2] ?? '')
    this.#at += isString ? 3 : (document?.[0].length ?? 1)
    return true
  }

  #endWord(): void {
    const word = this.#word
    this.#word = ''
    if (word === '') return
    const isFunctionName = this.#namesFunction
    this.#namesFunction = this.#atCommand && word === 'function'
    if (isFunctionName) this.#atCommand = true
    else if (this.#atCommand) this.#command(word)
  }

  #command(word: string): void {
    const closing = OPENS[word]
    if (closing !== undefined) this.#stack.push(closing)
    else if (CLOSES.has(word) && this.#stack.at(-1) === word) this.#stack.pop()
    this.#atCommand = BEFORE_COMMAND.has(word)
  }
}
