import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { relay } from './relay.ts'

const PIECES = 400
const PIECE = Buffer.alloc(64 * 1024)

let dir: string
let server: Server
let closed: Promise<unknown>

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'al-relay-'))
  const { promise, resolve } = Promise.withResolvers<unknown>()
  closed = promise
  server = createServer((_request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const answer = { status: 200, headers: {}, isFramed: true, body: pieces(), close: () => {} }
    relay(answer, response, { signal: gone.signal, stallMs: 1000 }).then(() => resolve('whole'), resolve)
  })
  server.listen(join(dir, 'socket'))
  await once(server, 'listening')
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
  rmSync(dir, { recursive: true })
})

it('a caller that stops reading is cut, and its call ends', async () => {
  const response = await ask()
  const cut = once(response, 'error')
  response.pause()
  expect(await closed).toMatchObject({ name: 'AbortError' })
  response.resume()
  expect(await cut).toMatchObject([{ code: 'ECONNRESET' }])
})

it('a caller that reads gets the whole answer', async () => {
  let bytes = 0
  for await (const piece of await ask()) bytes += (piece as Buffer).length
  expect([bytes, await closed]).toEqual([PIECES * PIECE.length, 'whole'])
})

async function* pieces(): AsyncGenerator<Buffer> {
  for (let i = 0; i < PIECES; i += 1) yield await Promise.resolve(PIECE)
}

async function ask(): Promise<IncomingMessage> {
  const outgoing = request({ socketPath: join(dir, 'socket'), agent: false }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return response
}
