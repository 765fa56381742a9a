import { AirlockError, type NodeCommand, nodeCommand } from '@airlock/contract'
import { type Frame, FrameDecoder, FrameError, STREAM } from '@airlock/contract/guest'

/** `rich` is of steps only. */
export type SaidOn = 'stdout' | 'stderr' | 'rich'

/** One piece of the output of a command or a step, or its end. */
export type OutputItem =
  | { readonly kind: 'bytes'; readonly stream: SaidOn; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'end'; readonly command: NodeCommand }

/** Cuts the data plane's output stream into items. Believes nothing that does not fit. */
export async function* readOutput(chunks: AsyncIterable<Buffer>): AsyncGenerator<OutputItem> {
  const decoder = new FrameDecoder()
  const iterator = chunks[Symbol.asyncIterator]()
  let isWhole = false
  try {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
      for (const item of decode(decoder, next.value).map(parseOutput)) {
        isWhole = item.kind === 'end'
        yield item
      }
  } finally {
    if (isWhole) void drain(iterator)
    else await iterator.return?.()
  }
}

/** Nothing comes after the end of a command but that of the answer; once that is read, the connection serves again. */
async function drain(iterator: AsyncIterator<Buffer>): Promise<void> {
  try {
    while ((await iterator.next()).done !== true);
  } catch {
    // It broke after all was said: the next call gets another connection.
  }
}

function decode(decoder: FrameDecoder, chunk: Buffer): readonly Frame[] {
  try {
    return decoder.push(chunk)
  } catch (cause) {
    if (!(cause instanceof FrameError)) throw cause
    throw new AirlockError('internal', 'The output stream of the data plane is broken.', { cause })
  }
}

function streamOf(byte: number): SaidOn {
  if (byte === STREAM.rich) return 'rich'
  return byte === STREAM.stderr ? 'stderr' : 'stdout'
}

export function parseOutput(frame: Frame): OutputItem {
  if (frame.kind === 'data') {
    return { kind: 'bytes', stream: streamOf(frame.stream), offset: frame.offset, bytes: frame.bytes }
  }
  const parsed = nodeCommand.safeParse(frame.json)
  if (parsed.success) return { kind: 'end', command: parsed.data }
  throw new AirlockError('internal', 'The data plane told an end that was not agreed.', { cause: parsed.error })
}
