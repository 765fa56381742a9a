/** What a socket is here: this package knows no other. */
interface Socket {
  end(text: string): unknown
  destroy(): unknown
  once(event: 'close', heard: () => void): unknown
  on(event: 'error', heard: () => void): unknown
}

/** Long enough for what was said to arrive, and short enough that nobody holds on to a socket that way. */
const LINGER_MS = 500

/**
 * Says a last word and closes. The other side may never read it, or never close its half: the socket is destroyed all the
 * same. Not at once, for a reset can take back what was not read yet.
 */
export function endSoon(socket: Socket, text = ''): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.once('close', () => clearTimeout(timer))
  // It is over either way.
  socket.on('error', () => socket.destroy())
  socket.end(text)
}
