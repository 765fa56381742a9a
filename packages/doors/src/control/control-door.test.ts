import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AirlockError, type AskAnswer, type ControlCall, type Self } from '@airlock/contract'
import { createLog, deadline, waitFor } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { controlDoor } from './control-door.ts'
import type { Door } from '../doors.ts'
import type { ControlAnswer } from '../link/control-plane-link.ts'

const SANDBOX = 'sbx_0000000000aaaaaaaaaaaaaaaa'
const SELF: Self = {
  sandbox: SANDBOX,
  tenant: 'default',
  agent: 'alice',
  generation: 1,
  scopes: ['self'],
  expiresAt: '2026-01-01T00:00:00.000Z',
  sandboxExpiresAt: '2026-01-01T00:00:00.000Z',
}
const AT = { sandbox: SANDBOX, config: { door: 'control', version: '1' } } as const
const HEAD = 'Host: airlock\r\nAuthorization: Bearer alt_x.y\r\n'

let dir: string
let door: Door
let calls: ControlCall[]
let answer: () => Promise<ControlAnswer>

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-door-'))
  calls = []
  answer = async () => SELF
  door = await open()
})

afterEach(async () => {
  await door.close()
  rmSync(dir, { recursive: true })
})

describe('what passes', () => {
  it.each([
    ['GET /v1/self', 'self'],
    ['POST /v1/self/heartbeat', 'heartbeat'],
    ['POST /v1/self/token', 'renew'],
  ] as const)('%s asks for %s, as the sandbox whose socket it is', async (line, ask) => {
    const { status, body } = await send(`${line} HTTP/1.1\r\n${HEAD}\r\n`)
    expect([status, body]).toEqual([200, SELF])
    expect(calls).toEqual([{ sandbox: SANDBOX, token: 'alt_x.y', ask }])
  })

  it('asks for an action with its detail, under the id that a refusal names, and passes the answer on', async () => {
    const allowed: AskAnswer = { allowed: true, rules: [] }
    answer = async () => allowed
    const { status, body } = await post({ action: 'deploy', detail: { to: 'prod' }, waitSeconds: 3 })
    expect([status, body]).toEqual([200, allowed])
    const requestId = expect.stringMatching(/^req_/) as string
    const asked = { action: 'deploy', detail: { to: 'prod' }, waitSeconds: 3 }
    expect(calls).toEqual([{ sandbox: SANDBOX, token: 'alt_x.y', ask: 'ask', requestId, body: asked }])
    answer = async () => Promise.reject(new AirlockError('approval_required', undefined, { approval: 'apr_1' }))
    const refused = await post({ action: 'deploy' })
    expect(refused.status).toBe(428)
    const [, call] = calls
    expect(refused.body).toMatchObject({
      error: { code: 'approval_required', approval: 'apr_1', requestId: call?.ask === 'ask' && call.requestId },
    })
  })

  it('carries no header, name or query of the request but the token', async () => {
    const lies = 'X-Airlock-Sandbox: other\r\nX-Forwarded-For: 10.0.0.1\r\nCookie: a=b\r\n'
    await send(`GET /v1/self HTTP/1.1\r\n${HEAD}${lies}\r\n`)
    expect(calls).toEqual([{ sandbox: SANDBOX, token: 'alt_x.y', ask: 'self' }])
  })

  it.each(['', 'Authorization: Basic eDp5\r\n', 'Authorization: Bearer\r\n', 'Authorization: bearer x y\r\n'])(
    'has no token when it comes with %j',
    async (header) => {
      await send(`GET /v1/self HTTP/1.1\r\nHost: airlock\r\n${header}\r\n`)
      expect(calls).toEqual([{ sandbox: SANDBOX, token: null, ask: 'self' }])
    },
  )

  it('is refused in the words of the control plane', async () => {
    answer = async () => Promise.reject(new AirlockError('token_refused'))
    const { status, body } = await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)
    expect(status).toBe(401)
    expect(body).toMatchObject({ error: { code: 'token_refused', retryable: false } })
  })

  it('is internal, and nothing of it is told, when something breaks', async () => {
    answer = async () => Promise.reject(new TypeError('/srv/secret'))
    const { status, text } = await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)
    expect(status).toBe(500)
    expect(text).not.toContain('secret')
  })
})

describe('what does not pass', () => {
  it.each([
    ['another route', `GET /v1/sandboxes HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ['another method', `DELETE /v1/self HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ['a query', `GET /v1/self?sandbox=other HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ['another spelling', `GET /v1//self HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ['a path that climbs', `GET /v1/../v1/self HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ['an escaped path', `GET /v1/%73elf HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ['an address as the target', `GET http://airlock/v1/self HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ['no host', 'GET /v1/self HTTP/1.1\r\n\r\n', 400],
    ['another host', 'GET /v1/self HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n', 400],
    ['a host with a port', 'GET /v1/self HTTP/1.1\r\nHost: airlock:7070\r\n\r\n', 400],
    ['two hosts', `GET /v1/self HTTP/1.1\r\n${HEAD}Host: other\r\n\r\n`, 400],
    ['two tokens', `GET /v1/self HTTP/1.1\r\n${HEAD}Authorization: Bearer z\r\n\r\n`, 400],
    ['an old version', `GET /v1/self HTTP/1.0\r\n${HEAD}\r\n`, 400],
    ['a body', `POST /v1/self/token HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\n{}`, 400],
    ['chunks', `POST /v1/self/token HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ['an encoded body', `POST /v1/self/token HTTP/1.1\r\n${HEAD}Content-Encoding: gzip\r\n\r\n`, 400],
    ['an upgrade', `GET /v1/self HTTP/1.1\r\n${HEAD}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n`, 400],
    ['an expectation', `POST /v1/self/token HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`, 400],
    ['an odd expectation', `POST /v1/self/token HTTP/1.1\r\n${HEAD}Expect: more\r\n\r\n`, 400],
    ['a head that is too long', `GET /v1/self HTTP/1.1\r\n${HEAD}X: ${'a'.repeat(20_000)}\r\n\r\n`, 400],
    ['a bare line feed', `GET /v1/self HTTP/1.1\nHost: airlock\n\n`, 400],
    ['a folded header', `GET /v1/self HTTP/1.1\r\n${HEAD}X: a\r\n b\r\n\r\n`, 400],
    ['a space before the colon', `GET /v1/self HTTP/1.1\r\nHost: airlock\r\nX : a\r\n\r\n`, 400],
    ['noise', '\u0000\u0001\u0002\r\n\r\n', 400],
  ])('%s', async (_what, request, status) => {
    const answered = await send(request)
    expect(answered.status).toBe(status)
    expect(calls).toEqual([])
  })

  it.each([
    ['two lengths', `${HEAD}Content-Length: 0\r\nContent-Length: 40\r\n`],
    ['a length and chunks', `${HEAD}Content-Length: 40\r\nTransfer-Encoding: chunked\r\n`],
    ['chunks of an odd name', `${HEAD}Transfer-Encoding: xchunked\r\n`],
    ['chunks behind a tab', `${HEAD}Transfer-Encoding:\tchunked\r\n`],
    ['a length with a sign', `${HEAD}Content-Length: +0\r\n`],
  ])('a request that is hidden behind %s', async (_what, head) => {
    const hidden = `GET /v1/self HTTP/1.1\r\nHost: airlock\r\nAuthorization: Bearer smuggled\r\n\r\n`
    const { status, text } = await send(`POST /v1/self/token HTTP/1.1\r\n${head}\r\n0\r\n\r\n${hidden}`)
    expect(status).toBe(400)
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(calls).toEqual([])
  })

  it.each<[string, unknown]>([
    ['no action', {}],
    ['another spelling of an action', { action: 'Deploy' }],
    ['an action that is too long', { action: 'a'.repeat(65) }],
    ['a field that is not known', { action: 'a', sandbox: 'other' }],
    ['a detail that is no object', { action: 'a', detail: ['x'] }],
    ['a detail that is too large', { action: 'a', detail: { x: 'y'.repeat(4096) } }],
    ['a detail that is too deep', { action: 'a', detail: deep(7) }],
    ['a detail as deep as the body allows', { action: 'a', detail: deep(2500) }],
    ['a detail with a key that schemas drop', '{"action":"a","detail":{"__proto__":{"x":1}}}'],
    ['a wait that is too long', { action: 'a', waitSeconds: 301 }],
    ['no JSON', 'noise'],
    ['nothing', ''],
  ])('an ask with %s', async (_what, body) => {
    const { status, body: said } = await post(body)
    expect([status, said]).toMatchObject([400, { error: { code: 'invalid_request' } }])
    expect(calls).toEqual([])
  })

  it('a body that is larger than an ask can be', async () => {
    const { status, body } = await post({ action: 'a', detail: { x: 'y'.repeat(20_000) } })
    expect([status, body]).toMatchObject([413, { error: { code: 'body_too_large' } }])
  })

  it('more asks at once than a person is asked about', async () => {
    const held = Promise.withResolvers<AskAnswer>()
    answer = () => held.promise
    const waiting = Array.from({ length: 8 }, async () => post({ action: 'a', waitSeconds: 300 }))
    await expect.poll(() => calls.length).toBe(8)
    expect((await post({ action: 'a' })).status).toBe(429)
    answer = async () => SELF
    expect((await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)).status).toBe(200)
    held.resolve({ allowed: true, rules: [] })
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200))
  })

  it('CONNECT, which is cut off', async () => {
    expect((await send(`CONNECT airlock:80 HTTP/1.1\r\n${HEAD}\r\n`)).text).toBe('')
    expect(calls).toEqual([])
  })

  it('more than its rate', async () => {
    const statuses = []
    for (let at = 0; at < 25; at++) statuses.push((await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)).status)
    expect(statuses.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 200))
    expect(statuses).toContain(429)
  })

  it('more renewals than anybody needs, and everything else does', async () => {
    const statuses = []
    for (let at = 0; at < 12; at++) statuses.push((await send(`POST /v1/self/token HTTP/1.1\r\n${HEAD}\r\n`)).status)
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429, 429])
    expect((await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)).status).toBe(200)
  })

  it('more connections than it has, when all of them wait for an answer', async () => {
    const held = Promise.withResolvers<ControlAnswer>()
    answer = () => held.promise
    const served = Array.from({ length: 16 }, async () => send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`))
    await expect.poll(() => calls.length).toBe(16)
    expect((await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)).text).toBe('')
    held.resolve(SELF)
    expect((await Promise.all(served)).map(({ status }) => status)).toEqual(served.map(() => 200))
  })
})

describe('a newcomer takes the place of', () => {
  const PARTS = {
    silent: '',
    'in the middle of a head': 'GET /v1/self HTTP/1.1\r\nHost: air',
    'idle after an answer': `GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`,
  }
  it.each(Object.entries(PARTS))('a connection that is %s, the oldest first', async (_what, said) => {
    const others = await Promise.all(Array.from({ length: 16 }, async () => dial()))
    for (const [at, socket] of others.entries()) {
      if (said === '') break
      socket.write(said)
      // One after the other, so that it is known which is the oldest.
      if (said.endsWith('\r\n\r\n')) await once(socket, 'data')
      else await expect.poll(() => socket.bytesWritten, { message: `${at}` }).toBe(said.length)
    }
    const closed = others.map((socket) => new Promise((resolve) => socket.once('close', () => resolve(true))))
    const { status } = await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)
    expect(status).toBe(200)
    await closed[0]
    expect(others.map(({ closed }) => closed)).toEqual(others.map((_, at) => at === 0))
    for (const socket of others) socket.destroy()
  })

  it('none that waits for an answer', async () => {
    const held = Promise.withResolvers<ControlAnswer>()
    answer = () => held.promise
    const served = send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)
    await expect.poll(() => calls.length).toBe(1)
    answer = async () => SELF
    const silent = await Promise.all(Array.from({ length: 40 }, async () => dial()))
    expect((await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)).status).toBe(200)
    held.resolve(SELF)
    expect((await served).status).toBe(200)
    for (const socket of silent) socket.destroy()
  })
})

it('lets go of whoever was refused, though they keep their half of the connection open', async () => {
  const refused = await Promise.all(Array.from({ length: 16 }, async () => dial({ allowHalfOpen: true })))
  for (const socket of refused) socket.resume().write('noise\r\n\r\n')
  // Long before the door cuts off who is silent.
  const passes = async () => ((await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)).status === 200 ? true : undefined)
  await waitFor(passes, { signal: deadline(100_000), everyMs: 200 })
  for (const socket of refused) socket.destroy()
})

describe('the socket', () => {
  it('is for everybody who sees it', () => {
    expect(statSync(join(dir, 'airlock.sock')).mode & 0o777).toBe(0o666)
  })

  it('takes the place of what an earlier process left', async () => {
    await door.close()
    writeFileSync(join(dir, 'airlock.sock'), '')
    door = await open()
    expect((await send(`GET /v1/self HTTP/1.1\r\n${HEAD}\r\n`)).status).toBe(200)
  })

  it('goes when the door is closed, and whoever was there is cut off', async () => {
    const waiting = await dial()
    const closed = new Promise((resolve) => waiting.once('close', resolve))
    await door.close()
    await closed
    expect(existsSync(join(dir, 'airlock.sock'))).toBe(false)
  })

  it('cannot be opened where there is no directory', async () => {
    await expect(
      controlDoor({ controlPlane: { call: async () => SELF }, log: quiet() })({ ...AT, dir: `${dir}/no` }),
    ).rejects.toThrow('EACCES')
  })
})

async function open(): Promise<Door> {
  const controlPlane = {
    call: async (call: ControlCall) => {
      calls.push(call)
      return answer()
    },
  }
  return controlDoor({ controlPlane, log: quiet() })({ ...AT, dir })
}

async function post(body: unknown) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return send(`POST /v1/self/ask HTTP/1.1\r\n${HEAD}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
}

/** An object with objects in it, so many levels. */
function deep(levels: number): object {
  return Array.from({ length: levels - 1 }).reduce<object>((inner) => ({ x: inner }), {})
}

function quiet() {
  return createLog({ process: 'doors', level: 'silent', write: () => {} })
}

async function dial(options: { readonly allowHalfOpen?: true } = {}) {
  const socket = connect({ path: join(dir, 'airlock.sock'), ...options })
  socket.on('error', () => {})
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  return socket
}

/** Everything that is said until the door hangs up, or has answered once. */
async function send(bytes: string): Promise<{ status: number; text: string; body: unknown }> {
  const socket = await dial()
  let text = ''
  socket.setEncoding('latin1')
  const over = new Promise<void>((resolve) => {
    socket.on('close', () => resolve())
    socket.on('data', (chunk: string) => {
      text += chunk
      if (isWhole(text)) socket.end()
    })
  })
  socket.write(bytes, 'latin1')
  await over
  socket.destroy()
  const body = text.split('\r\n\r\n')[1]
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text, body: body ? JSON.parse(body) : undefined }
}

function isWhole(text: string): boolean {
  const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN)
  return (text.split('\r\n\r\n')[1]?.length ?? -1) >= length
}
