import { AirlockError, type NodeImage, type NodeImageEvent, toAirlockError } from '@airlock/contract'
import { LatestFeed } from '@airlock/std'
import type { TemplateFacts } from './template-facts.ts'
import type { Context } from '../app/context.ts'
import { faultOf } from '../nodes/image-fault.ts'
import { doRecorded, type Governed } from '../evidence/evidence.ts'

/** Builds that callers wait for. Whoever asks for the same one waits for the same one, and it goes on without them. */
export class ImageBuilds {
  readonly #context: Pick<Context, 'dataPlane' | 'audit' | 'clock' | 'log'>
  readonly #feeds = new Map<string, LatestFeed<NodeImageEvent>>()

  constructor(context: Pick<Context, 'dataPlane' | 'audit' | 'clock' | 'log'>) {
    this.#context = context
  }

  async ready(pass: () => Promise<Governed>, facts: TemplateFacts): Promise<NodeImage> {
    for await (const event of this.events(pass, facts)) if (event.event === 'ended') return event.image
    throw new AirlockError('template_failed')
  }

  /** Ends with `ended` or throws. What is there already is neither asked about, nor built, nor recorded. */
  async *events(
    pass: () => Promise<Governed>,
    { spec }: TemplateFacts,
  ): AsyncGenerator<Exclude<NodeImageEvent, { event: 'error' }>> {
    const key = spec.packages.join(' ')
    const { images } = await this.#context.dataPlane.images.list()
    const image = images.find(({ source, packages }) => source === 'packages' && packages.join(' ') === key)
    if (image) return yield { event: 'ended', image }
    const deed = await pass()
    for await (const event of this.#follow(key, deed, spec.packages).values()) {
      if (event.event === 'error') throw faultOf(event.error)
      yield event
    }
  }

  #follow(key: string, deed: Governed, packages: readonly string[]): LatestFeed<NodeImageEvent> {
    const known = this.#feeds.get(key)
    if (known) return known
    const feed = new LatestFeed<NodeImageEvent>()
    this.#feeds.set(key, feed)
    void this.#build(deed, packages, feed).finally(() => this.#feeds.delete(key))
    return feed
  }

  /** Never throws: what fails is said in the feed. */
  async #build(deed: Governed, packages: readonly string[], feed: LatestFeed<NodeImageEvent>): Promise<void> {
    try {
      const image = await doRecorded(this.#context, deed, async () => {
        for await (const event of this.#context.dataPlane.images.build(packages))
          if (event.event === 'progress') feed.push(event)
          else return { value: event.image, payload: { image: event.image.name, bytes: event.image.bytes } }
        throw new AirlockError('data_plane_unavailable')
      })
      feed.push({ event: 'ended', image }, 'last')
    } catch (thrown) {
      const error = toAirlockError(thrown)
      if (error.code === 'internal') this.#context.log.error('a build failed', { error: thrown })
      feed.push({ event: 'error', error: { code: error.code, message: error.message, hint: error.hint } }, 'last')
    }
  }
}
