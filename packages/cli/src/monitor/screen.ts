import type { Terminal } from '../text/terminal.ts'
import { fitLine, paintLine, widthOf, type Line } from './line.ts'

/** Another screen than the one with what was there before; no cursor; lines that are too long are cut off. */
const ENTER = '\u001B[?1049h\u001B[?25l\u001B[?7l'
const LEAVE = '\u001B[?7h\u001B[?25h\u001B[?1049l'
/** Terminals that know it show all between them at once; others ignore it. */
const BEGIN = '\u001B[?2026h'
const END = '\u001B[?2026l'
const HOME = '\u001B[H'
const CLEAR_LINE_END = '\u001B[K'
const CLEAR_BELOW = '\u001B[J'

const CTRL_Z = '\u001A'
// oxlint-disable-next-line no-control-regex -- what terminals send for keys
const KEYS = /\u001B(?:\[[\d;]*[A-Za-z~]|O[A-Z])|[^]/g

/** A terminal that does not know its size has that of the first ones. */
const SIZE = { columns: 80, rows: 24 }

export interface Watcher {
  /** Keys as they come, escape sequences whole. */
  readonly onKey: (key: string) => void
  /** It has another size, or is shown again. */
  readonly onResize: () => void
  /** Nobody can press a key any more. */
  readonly onGone: () => void
}

/** The whole terminal, while it lasts. What was on it comes back however we end, but by SIGKILL. */
export class Screen implements Disposable {
  readonly #terminal: Terminal
  readonly #watcher: Watcher
  readonly #hasKeys = process.stdin.isTTY
  #isEntered = false

  constructor(terminal: Terminal, watcher: Watcher) {
    this.#terminal = terminal
    this.#watcher = watcher
    this.#enter()
    process.stdout.on('resize', watcher.onResize)
    process.on('SIGCONT', this.#goOn)
    process.on('exit', this.#leave)
    process.on('uncaughtExceptionMonitor', this.#leave)
    if (this.#hasKeys) process.stdin.on('data', this.#onData).on('end', watcher.onGone).on('error', watcher.onGone)
  }

  get size(): { readonly columns: number; readonly rows: number } {
    const { columns, rows } = process.stdout
    return { columns: columns || SIZE.columns, rows: rows || SIZE.rows }
  }

  /** Puts these lines over what is there, in one piece: nothing is cleared first, so nothing flickers. */
  draw(lines: readonly Line[]): void {
    if (!this.#isEntered) return
    const { columns, rows } = this.size
    const body = lines.slice(0, rows).map((line) => this.#paint(fitLine(line, columns), columns))
    process.stdout.write(`${BEGIN}${HOME}${body.join('\r\n')}${CLEAR_BELOW}${END}`)
  }

  /** After the last character of a full line the cursor stands on it, and clearing would take it away. */
  #paint(line: Line, columns: number): string {
    return paintLine(this.#terminal, line) + (widthOf(line) < columns ? CLEAR_LINE_END : '')
  }

  [Symbol.dispose](): void {
    this.#leave()
    process.stdout.off('resize', this.#watcher.onResize)
    process.off('SIGCONT', this.#goOn)
    process.off('exit', this.#leave)
    process.off('uncaughtExceptionMonitor', this.#leave)
    if (!this.#hasKeys) return
    process.stdin.off('data', this.#onData).off('end', this.#watcher.onGone).off('error', this.#watcher.onGone)
    process.stdin.pause()
  }

  #enter(): void {
    if (this.#hasKeys) process.stdin.setRawMode(true)
    process.stdout.write(ENTER)
    this.#isEntered = true
  }

  readonly #leave = (): void => {
    if (!this.#isEntered) return
    this.#isEntered = false
    process.stdout.write(LEAVE)
    if (this.#hasKeys) process.stdin.setRawMode(false)
  }

  readonly #onData = (bytes: Buffer): void => {
    for (const [key] of bytes.toString('latin1').matchAll(KEYS))
      if (key === CTRL_Z) this.#suspend()
      else this.#watcher.onKey(key)
  }

  /** As the terminal does it when it is not raw: all that the shell started together. Returns when it goes on. */
  #suspend(): void {
    this.#leave()
    process.kill(0, 'SIGTSTP')
    this.#goOn()
  }

  readonly #goOn = (): void => {
    this.#enter()
    this.#watcher.onResize()
  }
}
