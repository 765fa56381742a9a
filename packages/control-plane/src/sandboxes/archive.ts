import { createHash } from 'node:crypto'
import { AirlockError } from '@airlock/contract'
import { type TarEntry, TarError, TarManifest, TarReader, type TarSummary } from '@airlock/std/tar'

/** How much of an archive is judged before any of it is passed on. */
const AHEAD_BYTES = 1024 * 1024

/** An archive on its way through. No byte of an entry passes before the entry was judged, whichever side made it. */
export class JudgedArchive {
  readonly #pass: (entries: readonly TarEntry[]) => Promise<void>
  readonly #manifest = new TarManifest()
  readonly #outline = createHash('sha256')
  /** The first bytes are on their way into the sandbox. */
  isPassedOn = false

  /** `pass` throws for entries that may not pass. */
  constructor(pass: (entries: readonly TarEntry[]) => Promise<void>) {
    this.#pass = pass
  }

  /** SHA-256 over kind, mode and path of every entry, in their order. */
  get outline(): string {
    return this.#outline.copy().digest('hex')
  }

  /** Of what has passed. */
  get summary(): TarSummary {
    return this.#manifest.summary
  }

  async *judge(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const reader = new TarReader()
    for await (const chunk of bytes) {
      await this.#pass(this.#orInvalid(() => this.#take(reader, chunk)))
      yield chunk
    }
    this.#orInvalid(() => reader.finish())
  }

  #take(reader: TarReader, chunk: Buffer): readonly TarEntry[] {
    const entries: TarEntry[] = []
    for (const event of reader.push(chunk)) {
      this.#manifest.take(event)
      if (event.kind !== 'entry') continue
      const { kind, mode, path } = event.entry
      this.#outline.update(JSON.stringify([kind, mode, path]))
      entries.push(event.entry)
    }
    return entries
  }

  #orInvalid<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof TarError)) throw error
      const { files, directories, links } = this.#manifest.counts
      const passed = files + directories + links
      const how = this.isPassedOn ? `Up to ${passed} entries before it were written.` : 'Nothing was written.'
      throw new AirlockError('archive_invalid', `${error.message} ${how}`, { cause: error })
    }
  }
}

/** Resolves once the beginning is there, or all of it; throws what it throws until then. */
export async function readAhead(bytes: AsyncGenerator<Buffer>): Promise<AsyncGenerator<Buffer>> {
  const held: Buffer[] = []
  for (let size = 0; size < AHEAD_BYTES;) {
    const next = await bytes.next()
    if (next.done === true) break
    held.push(next.value)
    size += next.value.length
  }
  return goOn(held, bytes)
}

async function* goOn(held: Buffer[], rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    for (let first = held.shift(); first; first = held.shift()) yield first
    yield* rest
  } finally {
    // Somebody who leaves during the first bytes has not begun the rest.
    await rest.return(undefined)
  }
}
