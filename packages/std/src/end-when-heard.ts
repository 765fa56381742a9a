/** How long and how much of a body that nobody wants is read and thrown away, so that the sender gets to read our answer. */
const DRAIN_MS = 1_000
const DRAIN_BYTES = 8 * 1024 * 1024

/** What a request is here: this package knows no other. */
interface Body {
  on(event: 'data', heard: (chunk: { readonly length: number }) => void): unknown
  once(event: 'end' | 'error' | 'close', heard: () => void): unknown
  resume(): unknown
}

/**
 * Ends an answer that was sent while its request is still being sent. The connection closes with it, and a connection that
 * closes on what was not read is reset, which can take the answer back: so the rest is read for a while first.
 * Precondition: the answer is written whole, and its length is in its head.
 */
export function endWhenHeard(request: Body, response: { end(): unknown }): void {
  let left = DRAIN_BYTES
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, DRAIN_MS)
  request.on('data', (chunk) => {
    left -= chunk.length
    if (left < 0) end()
  })
  for (const event of ['end', 'error', 'close'] as const) request.once(event, end)
  request.resume()
}
