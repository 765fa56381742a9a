import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { AirlockError } from './errors.ts'
import { eventsOf, Patience, type Progress, type Subject } from './event-stream.ts'
import type { Template, TemplateEvent, TemplateSpec } from './nouns.ts'
import { tarDirectory } from './archive/tar.ts'
import type { Transport } from './transport.ts'

/**
 * A root file system, an OCI layout or the output of `docker save`: a directory or a tar on this machine, or the bytes of a
 * tar as they come.
 */
export type ImageSource =
  | { readonly path: string }
  | Uint8Array
  | AsyncIterable<Uint8Array>
  | ReadableStream<Uint8Array>

export interface ImportOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with what was sent so far, and with the whole where it is known. */
  readonly onProgress?: (sent: { readonly bytes: number; readonly total: number | null }) => void
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
  async import(name: string, source: ImageSource, options: ImportOptions = {}): Promise<Template> {
    const { signal, onProgress = () => undefined } = options
    const { bytes, total } = await openImage(source)
    const counted = count(bytes, (sent, isWhole) => onProgress({ bytes: sent, total: isWhole ? sent : total }))
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

async function openImage(
  source: ImageSource,
): Promise<{ readonly bytes: AsyncIterable<Uint8Array>; readonly total: number | null }> {
  if (source instanceof Uint8Array) return { bytes: whole(source), total: source.length }
  if (!('path' in source)) return { bytes: source, total: null }
  const found = await stat(source.path).catch((cause: unknown) => {
    throw new AirlockError('invalid_request', `${source.path} cannot be read.`, {
      cause,
      hint: 'Give a directory or a tar that is there.',
    })
  })
  if (found.isDirectory()) return { bytes: tarDirectory(source.path), total: null }
  return { bytes: createReadStream(source.path), total: found.size }
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
