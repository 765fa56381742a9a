import type { CommandEvent } from '@airlock/contract'

type OutputEvent = Extract<CommandEvent, { event: 'output' }>

/** Bytes of text in the JSON form of a result; everything beyond comes as events. */
const JSON_TEXT_BYTES = 16 * 1024 * 1024

/** The output of a run as text, lossy where it is not UTF-8. */
export class RunText {
  readonly #chunks: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  #left = JSON_TEXT_BYTES
  #isCut = false

  add(event: OutputEvent): void {
    const bytes = event.base64 === undefined ? Buffer.from(event.text ?? '') : Buffer.from(event.base64, 'base64')
    this.#chunks[event.stream].push(bytes.subarray(0, this.#left))
    this.#isCut ||= bytes.length > this.#left
    this.#left -= Math.min(this.#left, bytes.length)
  }

  /** A noun with its output. */
  of<N extends { readonly truncated: boolean }>(noun: N): N & { readonly stdout: string; readonly stderr: string } {
    const text = (stream: 'stdout' | 'stderr') => Buffer.concat(this.#chunks[stream]).toString('utf8')
    return { ...noun, truncated: noun.truncated || this.#isCut, stdout: text('stdout'), stderr: text('stderr') }
  }
}
