import { WINDOW_BYTES, CHUNK_BYTES } from '@airlock/contract/guest'

interface Segment {
  readonly stream: number
  readonly offset: number
  readonly bytes: Buffer
}

/** What a segment costs besides its bytes, so that dust cannot fill our memory. */
const SEGMENT_COST = 128

/** A command's output that the host has not acknowledged: said again after a reconnect, and the bound of backpressure. */
export class OutputWindow {
  #segments: Segment[] = []
  #cost = 0
  #produced = 0

  get produced(): number {
    return this.#produced
  }

  /** Both outputs may still deliver one chunk each after this says stop. */
  get isFull(): boolean {
    return this.#cost + 2 * (CHUNK_BYTES + SEGMENT_COST) > WINDOW_BYTES
  }

  get segments(): readonly Segment[] {
    return this.#segments
  }

  push(stream: number, bytes: Buffer): Segment {
    const segment = { stream, offset: this.#produced, bytes }
    this.#segments.push(segment)
    this.#produced += bytes.length
    this.#cost += bytes.length + SEGMENT_COST
    return segment
  }

  acknowledge(offset: number): void {
    const gone = this.#segments.findIndex((segment) => segment.offset + segment.bytes.length > offset)
    const dropped = this.#segments.splice(0, gone === -1 ? this.#segments.length : gone)
    for (const { bytes } of dropped) this.#cost -= bytes.length + SEGMENT_COST
    const first = this.#segments[0]
    if (!first || first.offset >= offset) return
    const rest = first.bytes.subarray(offset - first.offset)
    this.#cost -= first.bytes.length - rest.length
    this.#segments[0] = { stream: first.stream, offset, bytes: rest }
  }
}
