import { AirlockError, BOUNDS } from '@airlock/contract'
import { createHash } from 'node:crypto'
import type { Memory } from './admission/body-memory.ts'

/** What is asked about must be here after this time. */
const READ_MS = 30_000

/** Waits for memory for at most that many bytes of a request. */
export type Reserve = (maxBytes: number) => Promise<Memory>

/**
 * The body of an upload, which passes through as it is read; or, once its digest was asked for, from memory. So a person can be
 * asked about exactly these bytes before any of them has an effect.
 */
export class HeldBytes implements AsyncIterable<Buffer> {
  readonly #source: AsyncIterable<Buffer>
  readonly #reserve: Reserve
  #held: Promise<Held> | undefined
  #size = 0

  constructor(source: AsyncIterable<Buffer>, reserve: Reserve) {
    this.#source = source
    this.#reserve = reserve
  }

  /** How much is kept in memory. */
  get size(): number {
    return this.#size
  }

  /** SHA-256 of all of it, in hex. Reads at most the bound. */
  async digest(): Promise<string> {
    this.#held ??= this.#read()
    return (await this.#held).digest
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    if (this.#held) yield* (await this.#held).chunks
    else yield* this.#source
  }

  async #read(): Promise<Held> {
    const memory = await this.#reserve(BOUNDS.askedBytes)
    const hash = createHash('sha256')
    const chunks: Buffer[] = []
    const iterator = this.#source[Symbol.asyncIterator]()
    const end = performance.now() + READ_MS
    try {
      for (;;) {
        const next = await orLate(iterator.next(), end - performance.now())
        if (next.done === true) {
          memory.shrinkTo(this.#size)
          return { digest: hash.digest('hex'), chunks }
        }
        hash.update(next.value)
        chunks.push(next.value)
        this.#size += next.value.length
        if (this.#size > BOUNDS.askedBytes) throw tooMuch()
      }
    } finally {
      await iterator.return?.()
    }
  }
}

interface Held {
  readonly digest: string
  readonly chunks: readonly Buffer[]
}

async function orLate<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new AirlockError('policy_denied', 'A person must approve it, and its bytes did not arrive in time.')),
    ms,
  )
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

function tooMuch(): AirlockError {
  const mib = BOUNDS.askedBytes / 1024 / 1024
  return new AirlockError(
    'policy_denied',
    `A person must approve it, and nobody is asked about more than ${mib} MiB.`,
    {
      hint: 'Send it in smaller parts.',
    },
  )
}
