/**
 * What comes out of a sandbox must not steer the terminal: no escape sequence, no clipboard write, no line that paints
 * over another, no text that runs backwards. Each such character is shown as something visible instead.
 */
const STEERING = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** For a cell of a table or a message: one line. */
export function sanitizeLine(text: string): string {
  return text.toWellFormed().replaceAll(STEERING, visible)
}

/** For output: line ends and tabs stay. A carriage return counts as a line end only together with a line feed. */
export class Sanitizer {
  readonly #decoder = new TextDecoder()
  #held = ''

  push(bytes: Uint8Array): string {
    return this.#clean(this.#held + this.#decoder.decode(bytes, { stream: true }))
  }

  /** What was held back for what might have followed. */
  finish(): string {
    const rest = this.#held + this.#decoder.decode()
    this.#held = ''
    return sanitizeText(rest)
  }

  #clean(text: string): string {
    this.#held = text.endsWith('\r') ? '\r' : ''
    return sanitizeText(this.#held === '' ? text : text.slice(0, -1))
  }
}

/** For text of several lines that is whole. */
export function sanitizeText(text: string): string {
  return text.replaceAll(STEERING, (char, at: number) => {
    if (char === '\n' || char === '\t') return char
    return char === '\r' && text[at + 1] === '\n' ? char : visible(char)
  })
}

/** Control pictures for C0 and DEL (␛ for ESC), an escape for everything else. */
function visible(char: string): string {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return '\u2421'
  return code <= 0xff ? `\\x${code.toString(16)}` : `\\u${code.toString(16).padStart(4, '0')}`
}
