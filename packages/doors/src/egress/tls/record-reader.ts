const MAX_RECORD = 16 * 1024
/** Of a record: type, version, length. */
const HEADER = 5

/** A part of one record's body. */
export interface Fragment {
  readonly type: number
  readonly bytes: Buffer
  /** Where it ends in the chunk. */
  readonly end: number
  /** Bytes of the same record that follow. */
  readonly left: number
}

interface RecordRules {
  /** Throws unless a record of this type may come now. Called before anything else of the record is read. */
  readonly assertType: (type: number) => void
  readonly refused: (why: string) => Error
}

/** Splits a byte stream into plaintext TLS records, however it is cut. */
export class RecordReader {
  readonly #rules: RecordRules
  readonly #header = Buffer.alloc(HEADER)
  #headerLength = 0
  /** Bytes of the record's body that are missing. */
  #left = 0

  constructor(rules: RecordRules) {
    this.#rules = rules
  }

  *read(chunk: Buffer): Generator<Fragment> {
    let at = 0
    while (at < chunk.length)
      if (this.#left === 0) this.#takeHeader(chunk.readUInt8(at++))
      else {
        const end = Math.min(chunk.length, at + this.#left)
        const bytes = chunk.subarray(at, end)
        this.#left -= bytes.length
        at = end
        yield { type: this.#header.readUInt8(0), bytes, end, left: this.#left }
      }
  }

  #takeHeader(byte: number): void {
    const { assertType, refused } = this.#rules
    const at = this.#headerLength
    this.#header.writeUInt8(byte, at)
    this.#headerLength += 1
    if (at === 0) assertType(byte)
    if (at === 1 && byte !== 3) throw refused('is not TLS')
    if (this.#headerLength < HEADER) return
    this.#headerLength = 0
    this.#left = this.#header.readUInt16BE(3)
    if (this.#left === 0 || this.#left > MAX_RECORD) throw refused('has a record of a bad length')
  }
}
