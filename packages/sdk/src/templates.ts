import { eventsOf, Patience, type Progress, type Subject } from './transport/event-stream.ts'
import type { Template, TemplateEvent, TemplateSpec } from './nouns.ts'
import { chunksIn, type Transport } from './transport/transport.ts'

/** The bytes of a tar: a root file system, an OCI layout or the output of `docker save`. */
export type ImageBytes = Uint8Array | AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>

export interface ImportOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes sent so far, and with the total where it is known. */
  readonly onProgress?: (sent: { readonly bytes: number; readonly total: number | null }) => void
}

/** An image that is ready to be sent. */
export interface OpenImage {
  readonly bytes: ImageBytes
  readonly total: number | null
}

interface Options {
  readonly signal?: AbortSignal | undefined
}

/** What sandboxes start from. */
export class Templates {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async list(options: Options = {}): Promise<readonly Template[]> {
    return (await this.#transport.json('listTemplates', options)).items
  }

  async get(name: string, options: Options = {}): Promise<Template> {
    return this.#transport.json('getTemplate', { params: { name }, ...options })
  }

  /** Makes a template of Debian packages and defaults, or changes one. It is built when it is first used. */
  async put(name: string, spec: Partial<TemplateSpec>, options: Options = {}): Promise<Template> {
    return this.#transport.json('putTemplate', { params: { name }, body: spec, ...options })
  }

  /**
   * Builds a template, and answers what happens while it does; the last event is `ended`. One that is ready ends at
   * once, and one that is being built is followed. Leaving the iteration does not end the build.
   */
  async *build(name: string, options: Options = {}): AsyncGenerator<TemplateEvent> {
    const { signal } = options
    const headers = { accept: 'text/event-stream' }
    const progress: Progress = { from: 0, subject: undefined, ended: false }
    const patience = new Patience(signal)
    for (;;) {
      const response = await this.#transport.send('buildTemplate', { params: { name }, headers, signal })
      let achieved = false
      for await (const event of eventsOf(response, BUILD, { progress, signal })) {
        achieved = true
        yield event
      }
      if (progress.ended) return
      await patience.pause(achieved)
    }
  }

  /** Imports an image, which replaces the one that the template had. */
  async import(name: string, source: ImageBytes, options: ImportOptions = {}): Promise<Template> {
    return this.send(name, { bytes: source, total: source instanceof Uint8Array ? source.length : null }, options)
  }

  /** @internal */
  protected async send(name: string, { bytes, total }: OpenImage, options: ImportOptions): Promise<Template> {
    const { signal, onProgress = () => undefined } = options
    const chunks =
      bytes instanceof Uint8Array ? whole(bytes) : bytes instanceof ReadableStream ? chunksIn(bytes) : bytes
    const counted = count(chunks, (sent, isWhole) => onProgress({ bytes: sent, total: isWhole ? sent : total }))
    return this.#transport.json('importTemplate', { params: { name }, bytes: counted, signal })
  }

  /** Removes a template and, when nothing stands on it, its image. */
  async remove(name: string, options: Options = {}): Promise<void> {
    await this.#transport.send('removeTemplate', { params: { name }, ...options })
  }
}

/** A build that failed is tried again by whoever wants it. */
const BUILD: Pick<Subject<TemplateEvent>, 'subjectOf' | 'isFinal'> = {
  subjectOf: () => undefined,
  isFinal: ({ code }) => code === 'template_failed',
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function* count(
  bytes: AsyncIterable<Uint8Array>,
  sent: (bytes: number, isWhole: boolean) => void,
): AsyncGenerator<Uint8Array> {
  let total = 0
  for await (const chunk of bytes) {
    yield chunk
    total += chunk.length
    sent(total, false)
  }
  sent(total, true)
}
