import type { Duplex } from 'node:stream'

/** As much as a ClientHello may have. */
const MAX_BYTES = 64 * 1024

/**
 * Reads on while a decision is awaited, for only a socket that is read says that its other side left. `giveBack` makes the bytes
 * unread again. `head` came with the request.
 */
export function holdEarly(client: Duplex, head: Buffer): { giveBack(): void; onLeft(listener: () => void): void } {
  const held = [head]
  let bytes = head.length
  let hasLeft = false
  let left = () => {}
  const onData = (chunk: Buffer) => {
    held.push(chunk)
    bytes += chunk.length
    if (bytes > MAX_BYTES) client.pause()
  }
  const onEnd = () => {
    hasLeft = true
    left()
  }
  client.on('data', onData).on('end', onEnd)
  return {
    giveBack() {
      client.pause()
      client.off('data', onData).off('end', onEnd)
      if (bytes > 0) client.unshift(Buffer.concat(held))
    },
    onLeft(listener) {
      left = listener
      if (hasLeft) listener()
    },
  }
}
