import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@airlock/std'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { readJson } from './bounded-json.ts'
import { listenForHttp, type PrivateListener } from './private-listener.ts'
import { refuse, sendJson } from './reply.ts'

const MAX = 1024
const schema = z.strictObject({ word: z.string().optional() })
const log = createLog({ process: 'test', level: 'silent', write: () => {} })

let dir: string
let path: string
let listener: PrivateListener

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-wire-'))
  path = join(dir, 'a.sock')
  listener = await listenForHttp(
    { unix: path, uid: null },
    {
      maxConnections: 8,
      requestMs: 30_000,
      onRequest: (request, response) =>
        void readJson(request, schema, MAX).then(
          (value) => sendJson(response, 200, value),
          (error: unknown) => refuse({ request, response }, error, log),
        ),
    },
  )
})

afterAll(() => {
  listener.close()
  rmSync(dir, { recursive: true })
})

async function post(body: string | Buffer): Promise<readonly [number | undefined, unknown]> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath: path, method: 'POST', agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve([response.statusCode, JSON.parse(text)]))
    })
    outgoing.on('error', reject).end(body)
  })
}

const refused = (code: string, message: string) => ({ error: { code, message } })

it('reads what was agreed, and nothing as {}', async () => {
  expect(await post('{"word":"hello"}')).toEqual([200, { word: 'hello' }])
  expect(await post('')).toEqual([200, {}])
  expect(await post(`{"word":"${'x'.repeat(MAX - 11)}"}`)).toMatchObject([200, {}])
})

it.each([
  ['one byte above the bound', `{"word":"${'x'.repeat(MAX - 10)}"}`],
  ['far above the bound, which is answered all the same', 'x'.repeat(4 * 1024 * 1024)],
])('refuses a body %s', async (_, body) => {
  expect(await post(body)).toEqual([413, refused('body_too_large', 'The body is larger than 1024 bytes.')])
})

it.each([
  ['text', 'hello'],
  ['bytes that are no text', Buffer.from('{"word":"\xff"}', 'latin1')],
])('refuses %s that is not JSON', async (_, body) => {
  expect(await post(body)).toEqual([400, refused('invalid_request', 'The body is not valid JSON.')])
})

it('says of what was not agreed which field it is', async () => {
  expect(await post('{"word":1}')).toMatchObject([400, { error: { message: expect.stringMatching(/^word: /) } }])
})

it('goes on after a sender that hung up in the middle', async () => {
  const socket = connect(path)
  socket.end('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{"w')
  await new Promise((resolve) => socket.resume().on('close', resolve))
  expect(await post('{}')).toEqual([200, {}])
})
