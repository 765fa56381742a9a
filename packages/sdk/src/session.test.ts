import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { Airlock, outputBytes, RichOutput, type Session, type StepEvent } from './index.ts'

const PIXEL = Buffer.from('\u0089PNG', 'latin1')
const rich = (kind: 'display' | 'result', data: object): string => `echo '${JSON.stringify({ kind, data })}' >&3`

let api: TestApi
let airlock: Airlock
let session: Session
beforeAll(async () => {
  api = await startTestApi()
  airlock = new Airlock({ url: api.url, apiKey: KEYS.developer })
  session = await airlock.sessions.create({ runtime: 'bash' })
})
afterAll(async () => api.close())

const using = (fetch: typeof globalThis.fetch): Airlock => new Airlock({ url: api.url, apiKey: KEYS.developer, fetch })

describe('sessions', () => {
  it('are created in a sandbox of yours, listed, looked at, and end without it', async () => {
    const sandbox = await airlock.sandboxes.create()
    const opened = await airlock.sessions.create({ runtime: 'python', sandbox, labels: { by: 'me' }, ttlMs: 60_000 })
    expect(opened.data).toMatchObject({
      runtime: 'python',
      sandbox: sandbox.id,
      ownsSandbox: false,
      labels: { by: 'me' },
      ttlMs: 60_000,
    })
    expect((await airlock.sessions.get(opened.id)).data).toEqual(opened.data)
    expect((await opened.sandbox()).data.id).toBe(sandbox.id)
    const listed = await airlock.sessions.list({ sandbox: sandbox.id })
    expect(listed.items.map((one) => one.id)).toEqual([opened.id])
    expect((await opened.restart()).data.restarts).toBe(1)
    expect((await opened.terminate()).data).toMatchObject({ state: 'terminated', endReason: 'terminated' })
    expect((await opened.terminate()).data.state).toBe('terminated')
    expect((await airlock.sessions.list({ sandbox: sandbox.id, state: 'all' })).items).toHaveLength(1)
    expect((await sandbox.refresh()).data.state).toBe('active')
  })

  it('end with their scope, and so does the sandbox that was made for one', async () => {
    let made: Session
    {
      await using scoped = await airlock.sessions.create({ runtime: 'node', create: { limits: { pids: 64 } } })
      await scoped.files.write('a.txt', 'a')
      made = scoped
    }
    expect((await made.refresh()).data.state).toBe('terminated')
    expect((await airlock.sandboxes.get(made.data.sandbox)).data).toMatchObject({
      state: 'stopped',
      limits: { pids: 64 },
    })
    await expect(made.run('true')).rejects.toMatchObject({ code: 'session_expired' })
  })
})

describe('steps', () => {
  it('answer what they said, and every output in its forms', async () => {
    const bundle = { 'text/plain': '42', 'text/html': '<b>42</b>', 'application/json': { of: [4, 2] } }
    const picture = { 'image/png': PIXEL.toString('base64'), 'text/html': 7 }
    const result = await session.run(`echo out; echo err >&2; ${rich('display', picture)}; ${rich('result', bundle)}`, {
      env: { A: '1' },
    })
    expect(result).toMatchObject({ status: 'completed', stdout: 'out\n', stderr: 'err\n', error: null })
    const [shown, value] = result.outputs
    expect([shown?.kind, shown?.png, shown?.html]).toEqual(['display', new Uint8Array(PIXEL), undefined])
    expect([value?.kind, value?.text, value?.html, value?.json, value?.png]).toEqual([
      'result',
      '42',
      '<b>42</b>',
      { of: [4, 2] },
      undefined,
    ])
    expect(JSON.parse(JSON.stringify(value))).toEqual({ kind: 'result', data: bundle })
  })

  it('tell callbacks while they run, in whole characters', async () => {
    const heard: string[] = []
    const code =
      String.raw`printf 'a\303'; sleep 0.1; printf '\244b'; echo err >&2; ` + rich('result', { 'text/plain': '1' })
    const result = await session.run(code, {
      onStdout: (text) => heard.push(`out ${text}`),
      onStderr: (text) => heard.push(`err ${text}`),
      onOutput: (output) => heard.push(`rich ${output.text}`),
    })
    expect(result.stdout).toBe('aäb')
    expect(heard.filter((one) => one.startsWith('out')).join('|')).toMatch(/^out a(?:\|out )?äb$/)
    expect(heard).toContain('err err\n')
    expect(heard).toContain('rich 1')
  })

  it('that fail are results', async () => {
    const error = { name: 'ValueError', message: 'no', traceback: 'line 1' }
    const result = await session.run(`echo '${JSON.stringify({ kind: 'error', error })}' >&3`)
    expect(result).toMatchObject({ status: 'failed', error })
  })

  it('get stdin and their own environment', async () => {
    const result = await session.run('cat; echo "$WHO"', { stdin: 'in ', env: { WHO: 'me' } })
    expect(result.stdout).toBe('in me\n')
  })

  it('come as events, with bytes that are no text', async () => {
    const bytes: number[] = []
    const kinds: string[] = []
    for await (const event of session.stream(String.raw`printf '\377\000a'`)) {
      kinds.push(event.event)
      if (event.event === 'output') bytes.push(...outputBytes(event))
    }
    expect(kinds).toEqual(['started', 'output', 'ended'])
    expect(bytes).toEqual([0xff, 0, 0x61])
  })

  it('are looked up, followed again and listed', async () => {
    const { id, stepId } = await session.run('echo again', { stepId: 'mine' })
    const step = session.step(id)
    expect(await step.get()).toMatchObject({ id, stepId: 'mine', status: 'completed' })
    expect(await step.output()).toMatchObject({ stdout: 'again\n' })
    expect(await step.wait()).toMatchObject({ stdout: 'again\n', stepId })
    const events: StepEvent[] = []
    for await (const event of step.events({ from: 6 })) events.push(event)
    expect(events.map((event) => event.event)).toEqual(['started', 'ended'])
    expect((await session.steps({ limit: 200 })).items.map((one) => one.id)).toContain(id)
  })

  it('run once per id', async () => {
    const code = 'date +%N > once; cat once'
    const first = await session.run(code, { stepId: 'once' })
    const second = await session.run(code, { stepId: 'once' })
    expect([second.id, second.stdout]).toEqual([first.id, first.stdout])
    await expect(session.run('other', { stepId: 'once' })).rejects.toMatchObject({ code: 'step_mismatch' })
  })

  it('are interrupted when the signal aborts, and nobody waits for them', async () => {
    const enough = new AbortController()
    const waiting = session.run('echo begun; exec sleep 30', {
      signal: enough.signal,
      stepId: 'aborted',
      onStdout: () => enough.abort(new TypeError('enough')),
    })
    await expect(waiting).rejects.toThrow('enough')
    const state = async (): Promise<unknown> => {
      const found = (await session.steps({ limit: 200 })).items.find((one) => one.stepId === 'aborted')
      return [found?.status, found?.error?.name]
    }
    await expect.poll(state).toEqual(['failed', 'Interrupted'])
  })

  it('are interrupted from elsewhere', async () => {
    const running = session.run('echo begun; exec sleep 30', { onStdout: async () => session.interrupt() })
    expect(await running).toMatchObject({ status: 'failed', error: { name: 'Interrupted' } })
  })
})

describe('two steps at once', () => {
  it('are interrupted one by one', async () => {
    const ids = new Map<string, string>()
    const run = async (name: string): Promise<unknown> => {
      for await (const event of session.stream(`echo ${name}; exec sleep 30`)) {
        if (event.event === 'output') ids.set(name, (await session.steps()).items[0]?.id ?? '')
        if (event.event === 'ended') return event.step.error?.name
      }
      return undefined
    }
    const first = run('first')
    await expect.poll(() => ids.get('first')).toBeDefined()
    const second = run('second')
    await expect.poll(() => ids.get('second')).toBeDefined()
    await session.step(ids.get('second') ?? '').interrupt()
    expect(await second).toBe('Interrupted')
    expect((await session.step(ids.get('first') ?? '').get()).status).toBe('running')
    await session.step(ids.get('first') ?? '').interrupt()
    expect(await first).toBe('Interrupted')
  })
})

describe('a connection that breaks', () => {
  it('in the middle of the output loses nothing and repeats nothing', async () => {
    let cuts = 0
    const cutting: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (response.headers.get('content-type') !== 'text/event-stream' || cuts >= 3) return response
      cuts++
      return new Response(ReadableStream.from(cutAfter(response.body, 4000)), response)
    }
    const found = await using(cutting).sessions.get(session.id)
    const show = rich('result', { 'text/plain': 'x'.repeat(3000) })
    const result = await found.run(
      `for i in 1 2 3 4 5; do head -c 3000 /dev/zero | tr "\\0" $i; sleep 0.05; done; ${show}`,
    )
    expect(cuts).toBe(3)
    expect(result.stdout).toBe([1, 2, 3, 4, 5].map((digit) => String(digit).repeat(3000)).join(''))
    expect(result.outputs).toEqual([new RichOutput({ kind: 'result', data: { 'text/plain': 'x'.repeat(3000) } })])
  })

  it('before the answer runs the step once', async () => {
    const sent: unknown[] = []
    const losing: typeof fetch = async (input, init) => {
      if (init?.method !== 'POST') return fetch(input, init)
      sent.push(init.body)
      const response = await fetch(input, init)
      if (sent.length > 1) return response
      await response.body?.cancel()
      throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
    }
    const found = await using(losing).sessions.get(session.id)
    const result = await found.run('echo x >> count; wc -l < count')
    expect(result.stdout.trim()).toBe('1')
    expect(sent).toHaveLength(2)
    expect(sent[1]).toBe(sent[0])
  })

  it('is not waited for when no server listens', async () => {
    let calls = 0
    const gone: typeof fetch = async (input, init) => {
      if (init?.method !== 'POST') return fetch(input, init)
      calls++
      throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } })
    }
    const found = await using(gone).sessions.get(session.id)
    await expect(found.run('true')).rejects.toMatchObject({ code: 'server_unreachable' })
    expect(calls).toBe(3)
  })

  it('and a server that is busy are asked again, but not forever', async () => {
    let calls = 0
    const busy: typeof fetch = async (input, init) => {
      if (init?.method !== 'POST') return fetch(input, init)
      calls++
      return Response.json({ error: { code: 'too_many_steps', message: '', hint: '' } }, { status: 429 })
    }
    const found = await using(busy).sessions.get(session.id)
    await expect(found.run('true')).rejects.toMatchObject({ code: 'too_many_steps' })
    expect(calls).toBe(3)
  })
})

/** The beginning of a body, then a broken connection. */
async function* cutAfter(body: ReadableStream<Uint8Array> | null, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes
  for await (const chunk of body ?? []) {
    yield chunk.subarray(0, left)
    left -= chunk.length
    if (left <= 0) throw new TypeError('terminated')
  }
}
