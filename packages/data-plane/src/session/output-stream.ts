import { AirlockError } from '@airlock/contract'
import { encodeData, encodeMessage, STREAM } from '@airlock/contract/guest'
import type { CommandRecord } from './command-record.ts'
import type { Output, Spool } from './spool.ts'

export interface OutputAsked {
  readonly from: number
  /** Rich lines from their beginning, whatever `from` says: whoever goes on in the middle of one needs all of it. */
  readonly isRichWhole?: boolean
  readonly signal?: AbortSignal | undefined
}

/**
 * A command's output from byte `from` on as data frames, followed live, then the ended command as one message. It is read
 * from the spool, so a slow reader costs nothing but time.
 */
export async function* streamOutput(record: CommandRecord, spool: Spool, options: OutputAsked): AsyncGenerator<Buffer> {
  const reader = spool.reader(record.id)
  let offset = 0
  try {
    for (;;) {
      options.signal?.throwIfAborted()
      const end = record.fileBytes
      const isComplete = record.isComplete
      for await (const entry of reader.entries(end)) yield* rest(entry)
      if (reader.position < end) throw new AirlockError('internal', 'the output of the command is damaged')
      if (isComplete) break
      if (record.fileBytes === end && !record.isComplete) await record.nextChange(options.signal)
    }
    yield encodeMessage(record.command)
  } finally {
    reader.close()
  }

  /** An entry without what lies before `from`; nothing when that is all of it. */
  function* rest({ stream, bytes }: Output): Generator<Buffer> {
    const isWhole = options.isRichWhole === true && stream === STREAM.rich
    const skipped = isWhole ? 0 : Math.min(bytes.length, Math.max(0, options.from - offset))
    const at = offset + skipped
    offset += bytes.length
    if (skipped < bytes.length)
      yield encodeData({ channel: record.channel, stream, offset: at, bytes: bytes.subarray(skipped) })
  }
}
