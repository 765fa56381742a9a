/** What a request is here: this package knows no other. */
interface Body {
  on(event: 'data', heard: (chunk: { readonly length: number }) => void): unknown
  once(event: 'end' | 'error' | 'close', heard: () => void): unknown
  resume(): unknown
}

/** How much of an unwanted body is read and thrown away, so that its sender gets to read the answer. */
export interface DrainBounds {
  readonly bytes: number
  readonly ms: number
  /** What `ms` bounds. */
  readonly counts: 'all' | 'silence'
}

const USUAL: DrainBounds = { bytes: 8 * 1024 * 1024, ms: 1_000, counts: 'all' }

/**
 * Ends an answer that was sent while its request is still being sent. The connection closes with it, and a connection that
 * closes on what was not read is reset, which can take the answer back: so the rest is read for a while first.
 * Precondition: the answer is written whole, and its length is in its head.
 */
export function endWhenHeard(request: Body, response: { end(): unknown }, bounds: DrainBounds = USUAL): void {
  let left = bounds.bytes
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, bounds.ms)
  request.on('data', (chunk) => {
    left -= chunk.length
    if (left < 0) end()
    else if (bounds.counts === 'silence') timer.refresh()
  })
  for (const event of ['end', 'error', 'close'] as const) request.once(event, end)
  request.resume()
}
