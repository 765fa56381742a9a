import { AirlockError } from '@airlock/contract'
import type { StreamEvent } from './call.ts'

/** A comment this often tells both ends, and what is between them, that the stream lives. */
const HEARTBEAT_MS = 15_000
/** Who takes nothing for so long is cut, and has so long again to read what was sent. */
const SLOW_MS = 10_000
const GONE_MS = 30_000

/**
 * Events as server-sent events. The id of an event with output is the offset after it, that of a record its number, so a
 * client goes on with `Last-Event-ID` and loses nothing. What fails on the way becomes a last event: the status is long sent.
 */
export async function* eventFrames(
  events: AsyncIterable<StreamEvent>,
  options: { readonly onError: (thrown: unknown) => AirlockError; readonly heartbeatMs?: number },
): AsyncGenerator<string> {
  yield ': airlock\n\n'
  const { heartbeatMs } = options
  const onError = (thrown: unknown): string => {
    const { code, message, hint } = options.onError(thrown)
    return eventFrame({ event: 'error', error: { code, message, hint } })
  }
  yield* beatingFrames(framesOf(events), { onError, ...(heartbeatMs === undefined ? {} : { heartbeatMs }) })
}

async function* framesOf(events: AsyncIterable<StreamEvent>): AsyncGenerator<string> {
  for await (const event of events) yield eventFrame(event)
}

/** Frames with comments between them while there is nothing to say. What fails on the way becomes the last frame. */
export async function* beatingFrames(
  frames: AsyncIterable<string>,
  options: { readonly onError: (thrown: unknown) => string; readonly heartbeatMs?: number },
): AsyncGenerator<string> {
  const heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS
  const iterator = frames[Symbol.asyncIterator]()
  try {
    let next = nextOf(iterator)
    for (;;) {
      const result = await orTimeout(next, heartbeatMs)
      if (result === 'timeout') {
        yield ': still here\n\n'
        continue
      }
      if (result.done) return
      yield result.value
      next = nextOf(iterator)
    }
  } catch (thrown) {
    yield options.onError(thrown)
  } finally {
    await iterator.return?.()
  }
}

/**
 * Passes frames on as they are taken. Who takes nothing for a while holds nothing up: what feeds the stream is let go,
 * and when the client reads again it finds what was sent before and one last event that says where to go on.
 */
export async function* cutWhenSlow(
  frames: AsyncIterable<string>,
  slow: {
    readonly last: () => StreamEvent
    readonly onCut: () => void
    readonly onGone: () => void
    readonly slowMs?: number
    readonly goneMs?: number
  },
): AsyncGenerator<string> {
  let timer: NodeJS.Timeout | undefined
  let isCut = false
  const cut = (): void => {
    isCut = true
    slow.onCut()
    timer = setTimeout(slow.onGone, slow.goneMs ?? GONE_MS)
  }
  try {
    for await (const frame of frames) {
      timer = setTimeout(cut, slow.slowMs ?? SLOW_MS)
      yield frame
      clearTimeout(timer)
      if (isCut) break
    }
    if (isCut) yield eventFrame(slow.last())
  } finally {
    clearTimeout(timer)
  }
}

/** Exactly `size` bytes, as promised in the header: a file that grew is cut, one that shrank breaks the connection. */
export async function* exactly(size: number | undefined, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (size === undefined) return yield* bytes
  let left = size
  for await (const chunk of bytes) {
    if (left === 0) return
    yield chunk.subarray(0, left)
    left -= Math.min(left, chunk.length)
  }
  if (left > 0) throw new AirlockError('internal', 'The file ended before its size.')
}

function eventFrame(event: StreamEvent): string {
  const id =
    'offset' in event && event.offset !== undefined
      ? `id: ${event.offset}\n`
      : 'seq' in event
        ? `id: ${event.seq}\n`
        : ''
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Whoever waits for it hears of a failure; when nobody does any more, it is nobody's. */
function nextOf<T>(iterator: AsyncIterator<T>): Promise<IteratorResult<T>> {
  const next = iterator.next()
  next.catch(() => undefined)
  return next
}

async function orTimeout<T>(promise: Promise<T>, ms: number): Promise<T | 'timeout'> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<'timeout'>((resolve) => {
    timer = setTimeout(() => resolve('timeout'), ms)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
