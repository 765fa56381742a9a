import { type GuestCommandEnd, type GuestMessage, STREAM } from '@airlock/contract/guest'
import type { DataFrame, Outbox } from '../../outbox.ts'

/** Everything that a step said and how it ended. */
export interface CollectedStep {
  readonly stdout: string
  readonly stderr: string
  /** Lines of JSON, as the contract's `richLine`. */
  readonly rich: readonly unknown[]
  readonly truncated: boolean
  readonly end: GuestCommandEnd
}

interface Heard {
  readonly chunks: Readonly<Record<number, Buffer[]>>
  readonly closed: PromiseWithResolvers<CollectedStep>
  received: number
  end: GuestCommandEnd | undefined
}

/**
 * Where the session engine sends what a host would get in frames: it is kept until the step closes. What a step may say
 * is bounded by its caps, so this is.
 */
export class StepCollector implements Outbox {
  readonly #heard = new Map<number, Heard>()
  /** Tells the engine what was taken; it holds the step back otherwise. */
  acknowledge: (channel: number, offset: number) => void = () => undefined

  expect(channel: number): Promise<CollectedStep> {
    const closed = Promise.withResolvers<CollectedStep>()
    const chunks = { [STREAM.stdout]: [], [STREAM.stderr]: [], [STREAM.rich]: [] }
    this.#heard.set(channel, { chunks, closed, received: 0, end: undefined })
    return closed.promise
  }

  forget(channel: number): void {
    this.#heard.delete(channel)
  }

  sendData({ channel, stream, offset, bytes }: DataFrame): void {
    const heard = this.#heard.get(channel)
    if (!heard || offset !== heard.received) return
    // The engine may use its memory again.
    heard.chunks[stream]?.push(Buffer.from(bytes))
    heard.received += bytes.length
    const { received } = heard
    // Not from inside its own call.
    setImmediate(() => this.acknowledge(channel, received))
  }

  send(message: GuestMessage): void {
    if (message.type !== 'exited' && message.type !== 'closed') return
    const heard = this.#heard.get(message.channel)
    if (!heard) return
    if (message.type === 'exited') heard.end = message.end
    else if (heard.end) heard.closed.resolve(collect(heard, heard.end, message.truncated))
  }
}

function collect(heard: Heard, end: GuestCommandEnd, truncated: boolean): CollectedStep {
  const text = (stream: number) => Buffer.concat(heard.chunks[stream] ?? []).toString('utf8')
  const lines = text(STREAM.rich).split('\n').filter(Boolean)
  return {
    stdout: text(STREAM.stdout),
    stderr: text(STREAM.stderr),
    rich: lines.map((line): unknown => JSON.parse(line)),
    truncated,
    end,
  }
}
