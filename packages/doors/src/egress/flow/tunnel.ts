import type { Duplex } from 'node:stream'
import { AirlockError } from '@airlock/contract'
import { BEFORE_SECOND_HELLO, ClientHelloReader } from '../tls/client-hello.ts'
import { ServerStartReader } from '../tls/server-start.ts'
import { type Flow, pump } from './flow.ts'

/** The two ends of a tunnel. Both are half-open: each side ends for itself. */
export interface Ends {
  readonly client: Duplex
  readonly upstream: Duplex
}

interface TlsOptions {
  readonly flow: Flow
  /** What the client must name. */
  readonly serverName: string
  /** Until the ClientHello is whole. */
  readonly helloMs: number
}

/**
 * Lets the start of a TLS connection pass once its ClientHello names the host that was decided on; nothing is sent before that. A
 * server that asks for a second ClientHello gets one with the same name. Bytes of the client that follow the first one are held
 * until the server has answered in TLS, for they may be that second one. Throws `invalid_request`.
 */
export async function passTlsStart({ client, upstream }: Ends, options: TlsOptions): Promise<void> {
  const { flow } = options
  await passHello({ client, upstream }, new ClientHelloReader(), options)
  const server = new ServerStartReader()
  const answer = await readUntil(
    upstream,
    (chunk) => {
      const start = server.push(chunk)
      flow.count('received', chunk.length)
      client.write(chunk)
      return start
    },
    flow.signal,
  )
  if (answer === 'retry') await passHello({ client, upstream }, new ClientHelloReader(BEFORE_SECOND_HELLO), options)
}

/** Joins both ends, and resolves when both have ended, one has failed, or the flow was cut. Both are destroyed then. */
export async function tunnel({ client, upstream }: Ends, flow: Flow): Promise<void> {
  upstream.once('close', () => {
    if (!upstream.readableEnded) flow.cut('host gone')
  })
  pump(client, upstream, { flow, direction: 'sent' })
  pump(upstream, client, { flow, direction: 'received' })
  await Promise.race([
    Promise.all([ended(client), ended(upstream)]),
    closed(client),
    closed(upstream),
    aborted(flow.signal),
  ])
  // What was written still goes out, unless it was cut.
  if (!flow.signal.aborted) await Promise.race([flushed(client), aborted(flow.signal)])
  flow.done()
  client.destroy()
  upstream.destroy()
}

/** Sends one ClientHello that names the host. What follows it in the same chunk becomes unread. */
async function passHello(
  { client, upstream }: Ends,
  reader: ClientHelloReader,
  { flow, serverName, helloMs }: TlsOptions,
): Promise<void> {
  const late = AbortSignal.timeout(helloMs)
  const hello = await readUntil(client, (chunk) => reader.push(chunk), AbortSignal.any([flow.signal, late])).catch(
    (error: unknown) => {
      throw late.aborted ? new AirlockError('invalid_request', 'The TLS ClientHello did not come in time.') : error
    },
  )
  if (hello.serverName !== serverName)
    throw new AirlockError(
      'invalid_request',
      `The TLS ClientHello names ${hello.serverName}, and the connection is for ${serverName}.`,
    )
  if (hello.rest.length > 0) client.unshift(hello.rest)
  flow.count('sent', hello.bytes.length)
  upstream.write(hello.bytes)
}

/** Reads until `take` answers; what comes later stays unread. Throws `host_unreachable` when the socket ends before. */
async function readUntil<T>(socket: Duplex, take: (chunk: Buffer) => T | undefined, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const onData = (chunk: Buffer) => {
    try {
      const taken = take(chunk)
      if (taken !== undefined) resolve(taken)
      else return
    } catch (error) {
      reject(error)
    }
    stop()
  }
  const onEnd = () => {
    stop()
    reject(new AirlockError('host_unreachable', 'The connection ended before TLS began.'))
  }
  const stop = () => {
    socket.pause()
    socket.off('data', onData).off('end', onEnd).off('close', onEnd)
    signal.removeEventListener('abort', onEnd)
  }
  socket.on('data', onData).on('end', onEnd).on('close', onEnd)
  signal.addEventListener('abort', onEnd, { once: true })
  if (signal.aborted || socket.destroyed) onEnd()
  else socket.resume()
  return promise
}

async function ended(socket: Duplex): Promise<void> {
  if (!socket.readableEnded) await new Promise<void>((resolve) => socket.once('end', resolve))
}

async function closed(socket: Duplex): Promise<void> {
  if (!socket.destroyed) await new Promise<void>((resolve) => socket.once('close', resolve))
}

async function flushed(socket: Duplex): Promise<void> {
  if (socket.writableFinished || socket.destroyed) return
  await new Promise<void>((resolve) => socket.once('finish', resolve).once('close', resolve))
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted)
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
