import {
  AirlockError,
  type ImageReferences,
  type ImportedImage,
  importedImage,
  type NodeImageEvent,
  nodeImageEvent,
  type NodeImages,
  nodeImages,
} from '@airlock/contract'
import type { WireClient } from '@airlock/wire'
import { z } from 'zod'
import type { DataPlaneImages } from './data-plane.ts'
import { faultOf } from './image-fault.ts'

const SHORT_MS = 5_000
const PRUNE_MS = 120_000
/** No build and no import takes longer. */
const LONG_MS = 2 * 60 * 60_000
const MAX_LINE = 64 * 1024

/** Calls about images of `contract/src/host/data-plane-api.ts`. */
export class DataPlaneImageClient implements DataPlaneImages {
  readonly #http: WireClient

  constructor(http: WireClient) {
    this.#http = http
  }

  async list(): Promise<NodeImages> {
    return this.#http.json({ method: 'GET', path: '/images', answerMs: SHORT_MS, again: 'same' }, nodeImages)
  }

  async *build(packages: readonly string[]): AsyncGenerator<Exclude<NodeImageEvent, { event: 'error' }>> {
    const call = { method: 'POST', path: '/images', json: { packages }, answerMs: SHORT_MS, again: 'same' } as const
    const response = await this.#http.stream({ ...call, signal: AbortSignal.timeout(LONG_MS) })
    for await (const line of linesOf(this.#http.bytesOf(response))) {
      const event = nodeImageEvent.parse(JSON.parse(line))
      if (event.event === 'error') throw faultOf(event.error)
      yield event
      if (event.event === 'ended') return
    }
    throw new AirlockError('data_plane_unavailable')
  }

  async import(tar: AsyncIterable<Buffer>): Promise<ImportedImage> {
    const call = { method: 'PUT', path: '/images', bytes: tar, answerMs: LONG_MS, again: 'different' } as const
    return this.#http.json(call, importedImage)
  }

  async prune(references: ImageReferences): Promise<readonly string[]> {
    const call = { method: 'POST', path: '/images/prune', json: references, answerMs: PRUNE_MS, again: 'same' } as const
    return (await this.#http.json(call, z.strictObject({ removed: z.array(z.string()) }))).removed
  }
}

async function* linesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of bytes) {
    const lines = (rest + chunk.toString('utf8')).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE) throw new AirlockError('internal', 'A line of the data plane is too long.')
    yield* lines
  }
}
