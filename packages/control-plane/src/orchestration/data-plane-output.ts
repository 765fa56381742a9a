import { AirlockError, type NodeCommand, nodeCommand } from '@airlock/contract'
import { type Frame, FrameDecoder, FrameError, STREAM } from '@airlock/contract/guest'

/** One piece of a command's output, or its end. */
export type OutputItem =
  | { readonly kind: 'bytes'; readonly stream: 'stdout' | 'stderr'; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'end'; readonly command: NodeCommand }

/** Cuts the data plane's output stream into items. Believes nothing that does not fit. */
export async function* readOutput(chunks: AsyncIterable<Buffer>): AsyncGenerator<OutputItem> {
  const decoder = new FrameDecoder()
  for await (const chunk of chunks) for (const frame of decode(decoder, chunk)) yield parseItem(frame)
}

function decode(decoder: FrameDecoder, chunk: Buffer): readonly Frame[] {
  try {
    return decoder.push(chunk)
  } catch (cause) {
    if (!(cause instanceof FrameError)) throw cause
    throw new AirlockError('internal', 'The output stream of the data plane is broken.', { cause })
  }
}

function parseItem(frame: Frame): OutputItem {
  if (frame.kind === 'data') {
    const stream = frame.stream === STREAM.stderr ? 'stderr' : 'stdout'
    return { kind: 'bytes', stream, offset: frame.offset, bytes: frame.bytes }
  }
  const parsed = nodeCommand.safeParse(frame.json)
  if (parsed.success) return { kind: 'end', command: parsed.data }
  throw new AirlockError('internal', 'The data plane told an end that was not agreed.', { cause: parsed.error })
}
