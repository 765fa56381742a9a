import { RICH_BYTES } from '@airlock/contract/guest'
import type { DriverError, DriverRichLine } from './driver.ts'

/** For the error, whose text may grow sixfold when it is written as JSON. */
const ERROR_ROOM = 256 * 1024
/** For the lines that say what was dropped. */
const NOTICE_ROOM = 64 * 1024
const NOTICE_BYTES = 512
const NAMED_TYPES = 4

/** The rich lines of one step: what does not fit is named instead, and in the end there is always room for the error. */
export class RichOutput {
  readonly #write: (bytes: Buffer) => void
  #room = RICH_BYTES - ERROR_ROOM - NOTICE_ROOM
  #noticeRoom = NOTICE_ROOM

  constructor(write: (bytes: Buffer) => void) {
    this.#write = write
  }

  add(line: Exclude<DriverRichLine, { kind: 'error' }>): void {
    const bytes = encode(line)
    if (bytes.length <= this.#room) {
      this.#room -= bytes.length
      this.#write(bytes)
    } else this.#notice(line, bytes.length)
  }

  error(error: DriverError): void {
    this.#write(encode({ kind: 'error', error }))
  }

  #notice({ kind, data }: Exclude<DriverRichLine, { kind: 'error' }>, bytes: number): void {
    if (this.#noticeRoom < 2 * NOTICE_BYTES) return
    const types = Object.keys(data).slice(0, NAMED_TYPES).join(', ')
    const isLast = this.#noticeRoom < 3 * NOTICE_BYTES
    const rest = isLast ? '; further ones are not mentioned' : ''
    const text = `[dropped: ${types}, ${bytes} bytes; a step shows at most ${RICH_BYTES} bytes of outputs${rest}]`
    const line = encode({ kind, data: { 'text/plain': text.slice(0, NOTICE_BYTES) } })
    this.#noticeRoom -= Math.max(line.length, NOTICE_BYTES)
    this.#write(line)
  }
}

function encode(line: DriverRichLine): Buffer {
  return Buffer.from(`${JSON.stringify(line)}\n`)
}
