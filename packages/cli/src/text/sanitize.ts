import { STEERING } from '@airlock/std'

/** Our own colours, one number each. Never 8, which hides text. */
// oxlint-disable-next-line no-control-regex -- what `styleText` writes
const STYLE = /^\u001B\[(?!8m)\d{1,2}m/
const STYLE_LENGTH = 5

/**
 * What comes out of a sandbox must not steer the terminal: no escape sequence, no clipboard write, no line that paints
 * over another, no text that runs backwards. Each such character is shown as something visible instead.
 */

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
export function sanitizeText(text: string, stays: (at: number) => boolean = () => false): string {
  return text.replaceAll(STEERING, (char, at: number) => {
    if (char === '\n' || char === '\t' || stays(at)) return char
    return char === '\r' && text[at + 1] === '\n' ? char : visible(char)
  })
}

/** For text of ours that quotes others: line ends, tabs and our own colours stay. */
export function sanitizeStyled(text: string): string {
  return sanitizeText(text, (at) => STYLE.test(text.slice(at, at + STYLE_LENGTH)))
}

/** Control pictures for C0 and DEL (␛ for ESC), an escape for everything else. */
function visible(char: string): string {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return '\u2421'
  return code <= 0xff ? `\\x${code.toString(16)}` : `\\u${code.toString(16).padStart(4, '0')}`
}
