import { AirlockError, type CommandEvent } from '@airlock/contract'
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cutWhenSlow, eventFrames, exactly } from './stream.ts'
import { KEYS, startTestApi, type TestApi } from './testing/test-api.ts'

let api: TestApi
let sandbox: string
const headers = { authorization: `Bearer ${KEYS.developer}` }

beforeAll(async () => {
  api = await startTestApi()
  const response = await fetch(`${api.url}/v1/sandboxes`, { method: 'POST', headers })
  sandbox = ((await response.json()) as { id: string }).id
})
afterAll(async () => api.close())

interface RunOptions {
  readonly accept?: string
  readonly signal?: AbortSignal
}

async function run(body: object, options: RunOptions = {}): Promise<Response> {
  return fetch(`${api.url}/v1/sandboxes/${sandbox}/commands`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: options.accept ?? 'application/json' },
    body: JSON.stringify(body),
    ...(options.signal ? { signal: options.signal } : {}),
  })
}

async function output(command: string, more: Record<string, string> = {}): Promise<Response> {
  return fetch(`${api.url}/v1/sandboxes/${sandbox}/commands/${command}/output`, { headers: { ...headers, ...more } })
}

interface Frame {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: CommandEvent
}

function framesOf(text: string): readonly Frame[] {
  return text
    .split('\n\n')
    .filter((frame) => frame !== '' && !frame.startsWith(':'))
    .map((frame) => {
      const field = (name: string): string | undefined =>
        frame
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2)
      return { id: field('id'), event: field('event'), data: JSON.parse(field('data') ?? 'null') as CommandEvent }
    })
}

describe('commands as JSON', () => {
  it('answers when the command has ended, with both outputs as text', async () => {
    const response = await run({ shell: 'echo out; echo err >&2; printf "\\377"; exit 3' })
    expect(await response.json()).toMatchObject({
      state: 'exited',
      exitCode: 3,
      stdout: 'out\n\uFFFD',
      stderr: 'err\n',
      truncated: false,
    })
  })

  it('answers at once with background, and what there is when asked', async () => {
    const response = await run({ shell: 'echo begun; exec sleep 30', background: true })
    const command = (await response.json()) as { id: string }
    expect(command).toMatchObject({ state: 'running', stdout: '', stderr: '', exitCode: null })
    await expect
      .poll(async () => (await output(command.id)).json())
      .toMatchObject({ state: 'running', stdout: 'begun\n' })
    await fetch(`${api.url}/v1/sandboxes/${sandbox}/commands/${command.id}/signal`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{"signal":"SIGKILL"}',
    })
    await expect
      .poll(async () => (await output(command.id)).json())
      .toMatchObject({ state: 'exited', signal: 'SIGKILL', exitCode: null })
  })

  it('leaves the command running when the client goes away', async () => {
    const gone = new AbortController()
    const waiting = run({ argv: ['sleep', '30'] }, { signal: gone.signal })
    const list = async (): Promise<{ items: { id: string; state: string; argv: string[] }[] }> => {
      const response = await fetch(`${api.url}/v1/sandboxes/${sandbox}/commands`, { headers })
      return (await response.json()) as { items: { id: string; state: string; argv: string[] }[] }
    }
    await expect.poll(async () => (await list()).items[0]?.argv).toEqual(['sleep', '30'])
    gone.abort()
    await expect(waiting).rejects.toThrow()
    expect((await list()).items[0]?.state).toBe('running')
  })
})

describe('commands as events', () => {
  it('streams started, output with offsets as ids, and ended', async () => {
    const response = await run({ shell: 'printf ab; sleep 0.05; printf cde >&2' }, { accept: 'text/event-stream' })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const frames = framesOf(await response.text())
    expect(frames.map(({ id, event }) => [id, event])).toEqual([
      [undefined, 'started'],
      ['2', 'output'],
      ['5', 'output'],
      [undefined, 'ended'],
    ])
    expect(frames[1]?.data).toEqual({ event: 'output', stream: 'stdout', offset: 2, text: 'ab' })
    expect(frames[3]?.data).toMatchObject({ event: 'ended', command: { state: 'exited', exitCode: 0 } })
  })

  it('goes on after the Last-Event-ID', async () => {
    const started = (await (await run({ shell: 'printf ab; sleep 0.05; printf cde' })).json()) as { id: string }
    const response = await output(started.id, { accept: 'text/event-stream', 'last-event-id': '2' })
    const frames = framesOf(await response.text())
    expect(frames.map(({ data }) => (data.event === 'output' ? data.text : data.event))).toEqual([
      'started',
      'cde',
      'ended',
    ])
  })

  it('answers an error before the first event as an error', async () => {
    const response = await run({ argv: ['/no/such/program'] }, { accept: 'text/event-stream' })
    expect([response.status, await response.json()]).toMatchObject([422, { error: { code: 'executable_not_found' } }])
  })

  it('ends with an error event when the stream breaks, without the text of the fault', async () => {
    async function* broken(): AsyncGenerator<CommandEvent> {
      yield { event: 'truncated', limitBytes: 1 }
      throw new TypeError('secret')
    }
    const frames: string[] = []
    for await (const frame of eventFrames(broken(), { onError: () => new AirlockError('internal') })) frames.push(frame)
    expect(frames).toHaveLength(3)
    expect(frames.at(-1)).toMatch(/^event: error\ndata: .*"internal"/)
  })

  it('sends a comment while nothing happens', async () => {
    async function* slow(): AsyncGenerator<CommandEvent> {
      await new Promise((resolve) => setTimeout(resolve, 60))
      yield { event: 'truncated', limitBytes: 1 }
    }
    const frames: string[] = []
    const options = { onError: () => new AirlockError('internal'), heartbeatMs: 20 }
    for await (const frame of eventFrames(slow(), options)) frames.push(frame)
    expect(frames.filter((frame) => frame === ': still here\n\n').length).toBeGreaterThan(0)
    expect(frames.at(-1)).toContain('truncated')
  })
})

describe('files', () => {
  const at = (path: string, more = ''): string => `${api.url}/v1/sandboxes/${sandbox}/files?path=${path}${more}`

  it('streams 32 MiB in and out unchanged', async () => {
    const bytes = randomBytes(32 * 1024 * 1024)
    const up = await fetch(at('big.bin'), { method: 'PUT', headers, body: bytes })
    expect(await up.json()).toEqual({ path: 'big.bin', bytes: bytes.length })
    const down = await fetch(at('big.bin'), { headers })
    expect(down.headers.get('content-disposition')).toBe('attachment')
    expect(hash(Buffer.from(await down.arrayBuffer()))).toBe(hash(bytes))
  })

  it('writes an empty file, appends to it and reads it', async () => {
    await fetch(at('small'), { method: 'PUT', headers })
    expect(await (await fetch(at('small'), { headers })).text()).toBe('')
    await fetch(at('small', '&append=true'), { method: 'PUT', headers, body: 'more' })
    expect(await (await fetch(at('small'), { headers })).text()).toBe('more')
  })

  it('answers an error while the client still uploads', async () => {
    const response = await fetch(at('no/such/directory/x'), {
      method: 'PUT',
      headers,
      body: randomBytes(4 * 1024 * 1024),
    })
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: 'file_not_found' } }])
  })

  it('feeds stdin and closes it', async () => {
    const started = (await (await run({ argv: ['cat'], stdin: 'open', background: true })).json()) as { id: string }
    const stdin = `${api.url}/v1/sandboxes/${sandbox}/commands/${started.id}/stdin`
    expect((await fetch(stdin, { method: 'POST', headers, body: 'one ' })).status).toBe(204)
    expect((await fetch(`${stdin}?end=true`, { method: 'POST', headers, body: 'two' })).status).toBe(204)
    const frames = framesOf(await (await output(started.id, { accept: 'text/event-stream' })).text())
    expect(frames.flatMap(({ data }) => (data.event === 'output' ? [data.text] : [])).join('')).toBe('one two')
  })

  it('cuts a file that grew and breaks on one that shrank', async () => {
    async function* of(...parts: string[]): AsyncGenerator<Buffer> {
      for (const part of parts) yield Buffer.from(part)
    }
    const read = async (size: number, bytes: AsyncIterable<Buffer>): Promise<string> => {
      let text = ''
      for await (const chunk of exactly(size, bytes)) text += chunk.toString()
      return text
    }
    expect(await read(3, of('ab', 'cd', 'ef'))).toBe('abc')
    expect(await read(0, of())).toBe('')
    await expect(read(5, of('ab'))).rejects.toMatchObject({ code: 'internal' })
  })
})

it('ends open streams when it closes', async () => {
  const other = await startTestApi()
  const created = await fetch(`${other.url}/v1/sandboxes`, { method: 'POST', headers })
  const { id } = (await created.json()) as { id: string }
  const response = await fetch(`${other.url}/v1/sandboxes/${id}/commands`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: '{"argv":["sleep","30"]}',
  })
  const text = response.text().catch(() => 'broken')
  await other.close()
  expect(await text).toMatch(/not_ready|broken/)
})

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

describe('a client that takes nothing', () => {
  const last = () => ({ event: 'cut', seq: 7 }) as const
  async function* endless() {
    for (let n = 1; ; n++) yield `frame ${n}`
  }

  it('finds what was sent before and one last event that says where to go on', async () => {
    const { promise: cut, resolve: onCut } = Promise.withResolvers<void>()
    const onGone = () => expect.unreachable()
    const frames = cutWhenSlow(endless(), { last, onCut, onGone, slowMs: 20, goneMs: 60_000 })
    expect((await frames.next()).value).toBe('frame 1')
    expect((await frames.next()).value).toBe('frame 2')
    await cut
    expect((await frames.next()).value).toBe('id: 7\nevent: cut\ndata: {"event":"cut","seq":7}\n\n')
    expect(await frames.next()).toEqual({ done: true, value: undefined })
  })

  it('is let go when it does not come back', async () => {
    const { promise: gone, resolve: onGone } = Promise.withResolvers<void>()
    const frames = cutWhenSlow(endless(), { last, onCut: () => {}, onGone, slowMs: 10, goneMs: 10 })
    await frames.next()
    await gone
    await frames.return(undefined)
  })
})
