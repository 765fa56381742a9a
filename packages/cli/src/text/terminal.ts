import { escapeSteering } from '@airlock/std'
import { once } from 'node:events'
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { sanitizeLine, sanitizeStyled } from './sanitize.ts'

export type Style = Parameters<typeof styleText>[0]

/** Where the CLI prints. Results go to stdout; everything a person reads beside them goes to stderr. */
export class Terminal {
  readonly #allowsColor: boolean
  readonly #showsPictures: boolean

  constructor(options: { readonly allowsColor: boolean; readonly showsPictures?: boolean }) {
    this.#allowsColor = options.allowsColor
    this.#showsPictures = options.showsPictures ?? false
  }

  /** Whether stdout shows pictures. */
  get showsPictures(): boolean {
    return this.#showsPictures && process.stdout.isTTY
  }

  get isTty(): boolean {
    return process.stdout.isTTY
  }

  /** How many characters fit one line of stdout; no bound where nobody looks at it, or the terminal does not know. */
  get width(): number {
    return process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : Infinity
  }

  /** Whether progress may be shown. */
  get isWatched(): boolean {
    return process.stderr.isTTY
  }

  /** Lines of ours, which may quote what others said: nothing in them steers the terminal but our own colours. */
  async print(text: string): Promise<void> {
    await this.write('stdout', `${sanitizeStyled(text)}\n`)
  }

  /** Nothing in it steers a terminal, also not later, when it comes out of a file. The value is the same. */
  async printJson(value: unknown, layout: 'page' | 'line' = this.isTty ? 'page' : 'line'): Promise<void> {
    const json = JSON.stringify(value, null, layout === 'page' ? 2 : undefined)
    await this.write('stdout', `${escapeSteering(json)}\n`)
  }

  /** Exactly these bytes: the caller has seen to what they do to a terminal. Waits until a reader that is slow has taken it: nothing piles up here. */
  async write(stream: 'stdout' | 'stderr', bytes: Uint8Array | string): Promise<void> {
    const target = process[stream]
    if (!target.write(bytes)) await once(target, 'drain')
  }

  /** Waits until all of it has left: what a process still holds when it exits is lost. */
  async flush(): Promise<void> {
    await Promise.all([process.stdout, process.stderr].map(async (stream) => untilWritten(stream)))
  }

  note(text: string): void {
    process.stderr.write(`${sanitizeLine(text)}\n`)
  }

  /** Replaces the line that shows progress; an empty text removes it. */
  showProgress(text: string): void {
    const stream: WriteStream = process.stderr
    // A terminal without a size has no line to draw on.
    if (!(stream.columns > 0)) return
    stream.cursorTo(0)
    stream.write(sanitizeLine(text).slice(0, Math.max(0, stream.columns - 1)))
    stream.clearLine(1)
  }

  style(style: Style, text: string, stream: 'stdout' | 'stderr' = 'stdout'): string {
    return this.#allowsColor && process[stream].isTTY ? styleText(style, text, { validateStream: false }) : text
  }
}

async function untilWritten(stream: WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    // Nobody reads any more: it cannot arrive.
    stream.on('error', () => resolve())
    stream.write('', () => resolve())
  })
}
