import { visible } from './visible.ts'

/** A piece of output with one look. */
export interface Piece {
  readonly text: string
  /** Names of classes: `fg-1` to `fg-7`, `bold`, `dim`. */
  readonly look: string
}

/** The escape sequences for colours and weight; every other one is shown as text. */
// oxlint-disable-next-line no-control-regex -- it begins every sequence
const LOOK = /\u001b\[([\d;]{0,32})m/g
/** What may go on in the next chunk. */
// oxlint-disable-next-line no-control-regex -- the same
const UNFINISHED = /\u001b(?:\[[\d;]{0,32})?$|\r$/

/** Turns output into pieces, over the ends of chunks. */
export class AnsiReader {
  #rest = ''
  #colour = ''
  #weight = ''

  read(chunk: string): readonly Piece[] {
    let text = this.#rest + chunk
    this.#rest = UNFINISHED.exec(text)?.[0] ?? ''
    text = text.slice(0, text.length - this.#rest.length)
    const pieces: Piece[] = []
    let from = 0
    for (const match of text.matchAll(LOOK)) {
      this.#push(pieces, text.slice(from, match.index))
      for (const code of (match[1] ?? '').split(';')) this.#apply(Number(code))
      from = match.index + match[0].length
    }
    this.#push(pieces, text.slice(from))
    return pieces
  }

  /** Whatever was held back for a next chunk that does not come. */
  finish(): readonly Piece[] {
    const pieces: Piece[] = []
    this.#push(pieces, this.#rest)
    this.#rest = ''
    return pieces
  }

  #push(pieces: Piece[], text: string): void {
    if (text !== '')
      pieces.push({
        text: visible(text.replaceAll('\r\n', '\n')),
        look: [this.#colour, this.#weight].filter(Boolean).join(' '),
      })
  }

  #apply(code: number): void {
    if (code === 0) this.#colour = this.#weight = ''
    else if (code === 1) this.#weight = 'bold'
    else if (code === 2) this.#weight = 'dim'
    else if (code === 22) this.#weight = ''
    else if (code === 39) this.#colour = ''
    else if ((code >= 31 && code <= 36) || (code >= 91 && code <= 96)) this.#colour = `fg-${code % 10}`
  }
}
