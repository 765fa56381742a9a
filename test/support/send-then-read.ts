import { once } from 'node:events'
import { connect } from 'node:net'

const CHUNK = Buffer.alloc(64 * 1024)

interface Upload {
  readonly url: string
  readonly key: string
  readonly path: string
  readonly bytes: number
}

/** The answer to a PUT by a client that reads nothing until all is sent, as many HTTP libraries do. Fails when the connection breaks first. */
export async function sendThenRead({ url, key, path, bytes }: Upload): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).pause()
  const head = [`PUT ${path} HTTP/1.1`, 'host: localhost', `authorization: Bearer ${key}`, `content-length: ${bytes}`]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  for (let sent = 0; sent < bytes; sent += CHUNK.length)
    if (!socket.write(CHUNK.subarray(0, bytes - sent))) await once(socket, 'drain')
  const [answer] = (await once(socket.resume(), 'data')) as [Buffer]
  socket.destroy()
  return answer.toString('latin1')
}
