import {
  type ImageReferences,
  type ImportedImage,
  isAirlockError,
  type NodeImages,
  toAirlockError,
} from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { Images } from '../isolation/images.ts'
import type { Registry } from './registry.ts'

/** The images of this node, for the control plane. */
export class NodeImageDesk {
  readonly #images: Images
  readonly #registry: Registry
  readonly #log: Log

  constructor(options: { readonly images: Images; readonly registry: Registry; readonly log: Log }) {
    this.#images = options.images
    this.#registry = options.registry
    this.#log = options.log
  }

  list(): NodeImages {
    return this.#images.list()
  }

  /** One event a line. What fails is the last line: the head of the answer is long sent. */
  async *build(packages: readonly string[]): AsyncGenerator<Uint8Array> {
    try {
      for await (const event of this.#images.build(packages)) yield line(event)
    } catch (cause) {
      if (!isAirlockError(cause)) this.#log.error('a build failed', { error: cause })
      const { code, message, hint } = toAirlockError(cause)
      yield line({ event: 'error', error: { code, message, hint } })
    }
  }

  async import(tar: AsyncIterable<Buffer>, signal: AbortSignal): Promise<ImportedImage> {
    return this.#images.import(tar, signal)
  }

  async prune(references: ImageReferences): Promise<readonly string[]> {
    const removed = await this.#images.prune(references, this.#registry.imagesInUse())
    if (removed.length > 0) this.#log.info('removed images that nobody refers to', { images: removed })
    return removed
  }
}

function line(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}
