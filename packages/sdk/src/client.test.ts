import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { Airlock, AirlockError, outputBytes, type Sandbox } from './index.ts'
import { openConnection } from './node/connection.ts'
import { Transport } from './transport/transport.ts'

let api: TestApi
let airlock: Airlock
let sandbox: Sandbox
beforeAll(async () => {
  api = await startTestApi()
  airlock = new Airlock({ url: api.url, apiKey: KEYS.developer })
  sandbox = await airlock.sandboxes.create({ name: 'shared' })
})
afterAll(async () => api.close())

describe('sandboxes', () => {
  it('creates, gets, lists by label, extends and terminates', async () => {
    const created = await airlock.sandboxes.create({ name: 'one', labels: { team: 'red' }, limits: { pids: 64 } })
    expect(created.data).toMatchObject({ name: 'one', state: 'active', limits: { pids: 64 } })
    expect((await airlock.sandboxes.get(created.id)).data).toEqual(created.data)
    expect((await airlock.sandboxes.getOrCreate('one')).id).toBe(created.id)
    const listed = await airlock.sandboxes.list({ labels: { team: 'red' } })
    expect(listed.items.map((one) => one.id)).toEqual([created.id])
    const before = Date.parse(created.data.expiresAt)
    expect(Date.parse((await created.extend(3_600_000)).data.expiresAt)).toBeGreaterThan(before)
    expect((await created.terminate()).data).toMatchObject({ state: 'stopped', endReason: 'terminated' })
    expect((await created.terminate()).data.state).toBe('stopped')
  })

  it('ends with its scope', async () => {
    let id = ''
    {
      await using scoped = await airlock.sandboxes.create()
      id = scoped.id
    }
    expect((await airlock.sandboxes.get(id)).data.state).toBe('stopped')
  })

  it('says who we are', async () => {
    expect(await airlock.whoami()).toEqual({
      actor: 'key:developer',
      tenant: 'default',
      role: 'developer',
      agents: null,
      platform: false,
    })
  })
})

describe('commands', () => {
  it('runs to the end and answers both outputs', async () => {
    const result = await sandbox.run({ shell: 'echo out; echo err >&2; exit 3' })
    expect(result).toMatchObject({ exitCode: 3, signal: null, stdout: 'out\n', stderr: 'err\n', timedOut: false })
  })

  it('takes text for a line of shell', async () => {
    expect((await sandbox.run('echo one | tr o 0; ls -d /')).stdout).toBe('0ne\n/\n')
    expect((await (await sandbox.start('echo two')).wait()).stdout).toBe('two\n')
  })

  it.each([
    ['no command', undefined, {}],
    ['a number', 7, {}],
    ['arguments in place of options', 'ls', ['-la']],
    ['more words in place of options', 'ls', '-la'],
  ])('refuses %s, and says what a command is', async (_what, command, options) => {
    const run = sandbox.run.bind(sandbox) as (command: unknown, options: unknown) => Promise<unknown>
    await expect(run(command, options)).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'A command is a line of shell or one array of words.',
      hint: "Write run('ls -la') or run(['ls', '-la']); options come second, as an object.",
    })
  })

  it('passes arguments without a shell, environment and text for stdin', async () => {
    const result = await sandbox.run(['sh', '-c', 'cat; echo "$1 $GREETING"', 'sh', '$HOME'], {
      env: { GREETING: 'hello' },
      stdin: { text: 'in ' },
    })
    expect(result.stdout).toBe('in $HOME hello\n')
  })

  it('keeps bytes that are no text', async () => {
    const bytes: number[] = []
    for await (const event of sandbox.stream({ shell: String.raw`printf '\377\000a'` }))
      if (event.event === 'output') bytes.push(...outputBytes(event))
    expect(bytes).toEqual([0xff, 0, 0x61])
  })

  it('starts, feeds, follows twice, signals and waits', async () => {
    const command = await sandbox.start(['cat'], { stdin: 'open' })
    await command.write('one ')
    await command.end('two')
    const chunks: Uint8Array[] = []
    for await (const chunk of command.stdout()) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe('one two')
    expect(await command.wait()).toMatchObject({ stdout: 'one two', exitCode: 0 })
    const sleeping = await sandbox.start(['sleep', '30'])
    await sleeping.signal('SIGTERM')
    expect(await sleeping.wait()).toMatchObject({ signal: 'SIGTERM', exitCode: null })
    await expect(sleeping.signal('SIGTERM')).rejects.toMatchObject({ code: 'command_ended' })
  })

  it('stops waiting when aborted, and the command goes on', async () => {
    const aborted = new AbortController()
    const waiting = sandbox.run(['sleep', '30'], { signal: aborted.signal })
    await expect.poll(async () => (await sandbox.commands()).items[0]?.argv).toEqual(['sleep', '30'])
    aborted.abort(new TypeError('enough'))
    await expect(waiting).rejects.toThrow('enough')
    expect((await sandbox.commands()).items[0]?.state).toBe('running')
  })

  it('goes on after broken connections without losing or repeating a byte', async () => {
    let cuts = 0
    const cutting: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (response.headers.get('content-type') !== 'text/event-stream' || cuts >= 3) return response
      cuts++
      return new Response(cutAfter(response.body, 5000), response)
    }
    const flaky = new Airlock({ url: api.url, apiKey: KEYS.developer, fetch: cutting })
    const found = await flaky.sandboxes.get(sandbox.id)
    const result = await found.run({
      shell: 'for i in 1 2 3 4 5 6; do head -c 3000 /dev/zero | tr "\\0" $i; sleep 0.05; done',
    })
    expect(cuts).toBe(3)
    expect(result.stdout).toBe([1, 2, 3, 4, 5, 6].map((digit) => String(digit).repeat(3000)).join(''))
  })

  it('goes on when the server asks for patience in the middle, and fails when there is nothing to wait for', async () => {
    const saying = (code: string): Airlock => {
      let said = false
      const interrupting: typeof fetch = async (input, init) => {
        const response = await fetch(input, init)
        if (response.headers.get('content-type') !== 'text/event-stream' || said) return response
        said = true
        const error = { event: 'error', error: { code, message: 'told', hint: '' } }
        return new Response(ReadableStream.from(interrupted(response.body, error)), response)
      }
      return new Airlock({ url: api.url, apiKey: KEYS.developer, fetch: interrupting })
    }
    const run = async (airlock: Airlock): Promise<unknown> =>
      (await airlock.sandboxes.get(sandbox.id)).run({ shell: 'echo one; sleep 0.2; echo two' })
    expect(await run(saying('data_plane_unavailable'))).toMatchObject({ stdout: 'one\ntwo\n', exitCode: 0 })
    await expect(run(saying('guest_lost'))).rejects.toMatchObject({ code: 'guest_lost', message: 'told' })
  })
})

describe('files', () => {
  it('writes, appends, reads, lists, moves and removes', async () => {
    const { files } = sandbox
    await files.mkdir('dir/deep')
    expect(await files.write('dir/a.txt', 'hello')).toBe(5)
    await files.append('dir/a.txt', new TextEncoder().encode(' there'))
    expect(await files.readText('dir/a.txt')).toBe('hello there')
    expect(await files.stat('dir/a.txt')).toMatchObject({ name: 'a.txt', kind: 'file', size: 11 })
    await files.move('dir/a.txt', 'dir/b.txt')
    expect((await files.list('dir')).entries.map((entry) => entry.name)).toEqual(['b.txt', 'deep'])
    await files.remove('dir', { recursive: true })
    await expect(files.stat('dir')).rejects.toMatchObject({ code: 'file_not_found' })
  })

  it('streams what is larger than a buffer in both directions', async () => {
    const chunk = randomBytes(1024 * 1024)
    const sent = createHash('sha256')
    async function* source(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 24; i++) {
        sent.update(chunk)
        yield chunk
      }
    }
    expect(await sandbox.files.write('big', source())).toBe(24 * 1024 * 1024)
    const received = createHash('sha256')
    for await (const part of sandbox.files.readStream('big')) received.update(part)
    expect(received.digest('hex')).toBe(sent.digest('hex'))
  })
})

describe('errors', () => {
  it('carry code, hint, request id and whether to try again', async () => {
    const error: unknown = await sandbox.files.read('nothing').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AirlockError)
    expect(error).toMatchObject({
      code: 'file_not_found',
      message: 'There is no such file in the sandbox.',
      hint: 'List its directory.',
      retryable: false,
      requestId: expect.stringMatching(/^req_/) as unknown,
    })
  })

  it('say how to start a server when none listens', async () => {
    const gone = await startTestApi()
    await gone.close()
    await expect(new Airlock({ url: gone.url, apiKey: 'al_x' }).whoami()).rejects.toMatchObject({
      code: 'server_unreachable',
      message: `No Airlock server answers at ${gone.url}.`,
      hint: 'Start one with "npm start".',
    })
  })

  it('say so when something else answers', async () => {
    const other = async (): Promise<Response> => new Response('<html>', { status: 502 })
    await expect(new Airlock({ url: api.url, apiKey: 'x', fetch: other }).whoami()).rejects.toMatchObject({
      code: 'internal',
      hint: 'Check that AIRLOCK_URL is an Airlock server.',
    })
  })
})

describe('retries', () => {
  const refusing = (times: number, code: string): { calls: number; fetch: typeof fetch } => {
    const state = {
      calls: 0,
      fetch: async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
        state.calls++
        if (state.calls > times) return fetch(input, init)
        if (code.startsWith('E')) throw new TypeError('fetch failed', { cause: { code } })
        return Response.json({ error: { code, message: '', hint: '' } }, { status: 503 })
      },
    }
    return state
  }

  it('tries again what is safe, and connections that were refused', async () => {
    const busy = refusing(2, 'not_ready')
    await new Airlock({ url: api.url, apiKey: KEYS.developer, fetch: busy.fetch }).whoami()
    const refused = refusing(2, 'ECONNREFUSED')
    const created = await new Airlock({ url: api.url, apiKey: KEYS.developer, fetch: refused.fetch }).sandboxes.create()
    await created.terminate()
    expect([busy.calls, refused.calls]).toEqual([3, 4])
  })

  it('never sends twice what has an effect, and gives up in the end', async () => {
    const effect = refusing(1, 'capacity_exhausted')
    const make = (given: { fetch: typeof fetch }): Airlock =>
      new Airlock({ url: api.url, apiKey: KEYS.developer, fetch: given.fetch })
    await expect(make(effect).sandboxes.create()).rejects.toMatchObject({ code: 'capacity_exhausted' })
    const forever = refusing(100, 'not_ready')
    await expect(make(forever).whoami()).rejects.toMatchObject({ code: 'not_ready' })
    expect([effect.calls, forever.calls]).toEqual([1, 3])
  })

  it('asks again after a broken connection only what the server may see twice', async () => {
    const using = (given: { fetch: typeof fetch }): Airlock =>
      new Airlock({ url: api.url, apiKey: KEYS.developer, fetch: given.fetch })
    const read = refusing(1, 'ECONNRESET')
    await using(read).sandboxes.get(sandbox.id)
    const named = refusing(1, 'ECONNRESET')
    await (await using(named).sandboxes.getOrCreate('again')).terminate()
    expect([read.calls, named.calls]).toEqual([2, 3])
    const created = refusing(1, 'ECONNRESET')
    await expect(using(created).sandboxes.create()).rejects.toMatchObject({ code: 'server_unreachable' })
    expect(created.calls).toBe(1)
  })

  it('never repeats a stream, of which nothing is left to send', async () => {
    async function* once(): AsyncGenerator<Uint8Array> {
      yield new TextEncoder().encode('once')
    }
    const call = { params: { id: sandbox.id }, query: { path: 'streamed' } }
    const stream = refusing(1, 'ECONNREFUSED')
    const whole = refusing(1, 'ECONNREFUSED')
    const over = ({ fetch }: { fetch: typeof globalThis.fetch }): Transport =>
      new Transport(openConnection({ url: api.url, apiKey: KEYS.developer }), { fetch })
    await expect(over(stream).send('writeFile', { ...call, bytes: once() })).rejects.toMatchObject({
      code: 'server_unreachable',
    })
    expect(await over(whole).json('writeFile', { ...call, bytes: 'whole' })).toMatchObject({ bytes: 5 })
    const image = refusing(1, 'not_ready')
    await expect(over(image).send('importTemplate', { params: { name: 'mine' }, bytes: once() })).rejects.toMatchObject(
      {
        code: 'not_ready',
      },
    )
    expect([stream.calls, whole.calls, image.calls]).toEqual([1, 2, 1])
  })
})

/** The beginning of a body, then a broken connection. */
function cutAfter(body: ReadableStream<Uint8Array> | null, bytes: number): ReadableStream<Uint8Array> {
  let left = bytes
  const reader = body?.getReader()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done || value === undefined) return controller.close()
      controller.enqueue(value.subarray(0, left))
      left -= value.length
      if (left > 0) return
      await reader?.cancel()
      controller.error(new TypeError('terminated'))
    },
  })
}

/** The whole events of a body up to its first output, then one of our own. */
async function* interrupted(body: ReadableStream<Uint8Array> | null, event: object): AsyncGenerator<Uint8Array> {
  let text = ''
  for await (const chunk of body ?? []) {
    text += new TextDecoder().decode(chunk)
    if (/event: output\n.*\n\n/.test(text)) break
  }
  const whole = text.slice(0, text.lastIndexOf('\n\n') + 2)
  yield new TextEncoder().encode(`${whole}event: error\ndata: ${JSON.stringify(event)}\n\n`)
}
