import { type Address, connectTo } from './address.ts'
import { LineSocket } from './line-socket.ts'

const FIRST_BACKOFF_MS = 25
const LAST_BACKOFF_MS = 250

interface KeptLinkOptions {
  readonly address: Address
  /** Connected: the peer may still not answer. */
  readonly onOpen: (socket: LineSocket) => void
  readonly onLine: (line: string, socket: LineSocket) => void
  /** A connection that was open is gone, with whatever was not answered on it. */
  readonly onLost: () => void
}

/** One connection of lines to a peer, dialled again with a growing pause whenever it breaks. */
export class KeptLink {
  readonly #options: KeptLinkOptions
  #retry: NodeJS.Timeout | undefined
  #socket: LineSocket | undefined
  #backoffMs = FIRST_BACKOFF_MS
  #isClosed = false

  constructor(options: KeptLinkOptions) {
    this.#options = options
    this.#dial()
  }

  /** The peer answers as agreed: the next loss is followed by a dial at once. */
  settled(): void {
    this.#backoffMs = FIRST_BACKOFF_MS
  }

  /** The peer is known to be there: it is dialled now, if it is not connected. */
  hurry(): void {
    if (this.#retry === undefined || this.#isClosed) return
    clearTimeout(this.#retry)
    this.#dial()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
    this.#socket?.destroy()
  }

  #dial(): void {
    this.#retry = undefined
    const { address, onOpen, onLine } = this.#options
    const socket = connectTo(address)
    const lines = new LineSocket(socket, {
      onLine: (line) => onLine(line, lines),
      onClose: () => this.#onClose(isOpen),
    })
    let isOpen = false
    this.#socket = lines
    socket.once('connect', () => {
      isOpen = true
      onOpen(lines)
    })
  }

  #onClose(wasOpen: boolean): void {
    if (wasOpen) this.#options.onLost()
    if (this.#isClosed) return
    this.#retry = setTimeout(() => this.#dial(), this.#backoffMs)
    this.#backoffMs = Math.min(this.#backoffMs * 2, LAST_BACKOFF_MS)
  }
}
