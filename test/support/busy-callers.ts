import { connect, type Socket } from 'node:net'

/** A flood of calls: see `busy-flood.ts`. */
export interface BusyPlan {
  readonly port: number
  /** Connections at once, and the addresses that they come from in turn. */
  readonly count: number
  readonly from: readonly string[]
  /** The requests that connections send, in turn. */
  readonly texts: readonly string[]
  /** After an answer `repeat` asks again on the same connection, `renew` on a new one; `hold` asks once. */
  readonly mode: 'repeat' | 'renew' | 'hold'
  /** Delay until a closed connection is replaced. */
  readonly againMs: number
}

export interface BusyCounts {
  /** Connections made, and connections open now. */
  readonly opened: number
  readonly open: number
  /** Bytes that the kernel took from connections open now. */
  readonly sentBytes: number
  /** Answers by their status. */
  readonly answers: Readonly<Record<string, number>>
}

/** Small enough for the listen queue of the kernel. */
const AT_ONCE = 200
const NEXT_MS = 20

/** Calls a server by the plan in its first message. Answers each later message with its counts. */
function flood({ port, count, from, texts, mode, againMs }: BusyPlan): void {
  const answers: Record<string, number> = {}
  const open = new Set<Socket>()
  let opened = 0
  process.on('message', () => {
    const sentBytes = [...open].reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0)
    process.send?.({ opened, open: open.size, sentBytes, answers } satisfies BusyCounts)
  })
  process.on('disconnect', () => process.exit())

  const call = (at: number): void => {
    const text = texts[at % texts.length] ?? ''
    const socket = connect({ host: '127.0.0.1', port, localAddress: from[at % from.length], noDelay: true })
    const answer = new Answer()
    socket.once('connect', () => {
      opened += 1
      open.add(socket)
      socket.write(text)
    })
    socket.on('data', (chunk: Buffer) => {
      const status = answer.push(chunk)
      if (status === undefined) return
      answers[status] = (answers[status] ?? 0) + 1
      if (mode === 'repeat') socket.write(text)
      if (mode === 'renew') socket.destroy()
    })
    // 'close' follows.
    socket.on('error', () => {})
    socket.once('close', () => {
      open.delete(socket)
      setTimeout(call, mode === 'renew' ? 0 : againMs, at)
    })
  }
  for (let at = 0; at < count; at++) setTimeout(call, Math.floor(at / AT_ONCE) * NEXT_MS, at)
}

/** Parses consecutive answers, each with a length or in chunks. */
class Answer {
  #text = ''

  /** The status, once the answer is whole. */
  push(chunk: Buffer): string | undefined {
    this.#text += chunk.toString('latin1')
    const head = this.#text.indexOf('\r\n\r\n')
    if (head < 0) return undefined
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#text)?.[1]
    const isWhole =
      length === undefined ? this.#text.endsWith('0\r\n\r\n') : this.#text.length >= head + 4 + Number(length)
    if (!isWhole) return undefined
    const status = this.#text.slice(9, 12)
    this.#text = ''
    return status
  }
}

process.once('message', (plan) => flood(plan as BusyPlan))
