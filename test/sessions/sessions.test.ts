import type { AuditRecord, Sandbox } from '@airlock/contract'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { SessionsHttp } from './http.ts'

let server: BorrowedServer
let http: SessionsHttp
let sandbox: Sandbox

beforeAll(async () => {
  server = await borrowServer()
  http = new SessionsHttp(server)
  sandbox = (await http.send<Sandbox>('POST', '/v1/sandboxes', { template: 'base' })).body
})
afterAll(async () => {
  await server?.giveBack()
})

const soon = () => ({ signal: deadline(100_000), everyMs: 50 })
const stepsOf = (session: string) => `/v1/sessions/${session}/steps`

describe.each([
  { runtime: 'python', remember: 'x = 20', recall: 'print(x * 2)', throws: 'x.nothing', loop: 'while True: pass' },
  { runtime: 'node', remember: 'const x = 20', recall: 'console.log(x * 2)', throws: 'x.y.z', loop: 'for (;;) {}' },
  {
    runtime: 'bash',
    remember: 'x=20',
    recall: 'echo $((x * 2))',
    throws: 'nothing_like_it',
    loop: 'while :; do :; done',
  },
])('a $runtime session', ({ runtime, remember, recall, throws, loop }) => {
  it('remembers, fails one step without forgetting, and ends for good', async () => {
    const session = await http.open({ runtime, sandbox: sandbox.id, env: { GIVEN: 'x' } })
    expect(session).toMatchObject({ runtime, sandbox: sandbox.id, ownsSandbox: false, state: 'active', restarts: 0 })
    expect(session.runtimeVersion).not.toBe('')
    expect(await http.run(session.id, { code: remember })).toMatchObject({ status: 'completed', error: null })
    const failed = await http.run(session.id, { code: throws })
    expect(failed).toMatchObject({ status: 'failed', restarted: false })
    expect(failed.error?.name).toMatch(/^[A-Z]/)
    expect(await http.run(session.id, { code: recall })).toMatchObject({
      status: 'completed',
      stdout: '40\n',
      stderr: '',
      provenance: {
        image: sandbox.image,
        runtime: session.runtimeVersion,
        policyVersion: expect.stringMatching(/^builtin@\d+$/),
      },
    })
    const { body: ended } = await http.send('POST', `/v1/sessions/${session.id}/terminate`)
    expect(ended).toMatchObject({ state: 'terminated', endReason: 'terminated' })
    expect((await http.send('POST', `/v1/sessions/${session.id}/terminate`)).body).toEqual(ended)
    for (const [method, path, body] of [
      ['POST', stepsOf(session.id), { code: '1' }],
      ['POST', `/v1/sessions/${session.id}/interrupt`, undefined],
      ['POST', `/v1/sessions/${session.id}/restart`, undefined],
    ] as const)
      expect(await http.refused(method, path, body)).toEqual([410, 'session_expired'])
    expect((await http.send('GET', `/v1/sandboxes/${sandbox.id}`)).body).toMatchObject({ state: 'active' })
  })

  it('is interrupted and keeps what it remembers, is restarted and does not', async () => {
    const { id } = await http.open({ runtime, sandbox: sandbox.id })
    await http.run(id, { code: remember })
    const looping = http.run(id, { code: loop, stepId: 'loop' })
    await waitFor(async () => {
      const { body } = await http.send<{ items: { stepId: string; status: string }[] }>('GET', stepsOf(id))
      return body.items.some((step) => step.stepId === 'loop' && step.status === 'running') ? true : undefined
    }, soon())
    expect((await http.send('POST', `/v1/sessions/${id}/interrupt`)).status).toBe(204)
    expect(await looping).toMatchObject({ status: 'failed' })
    expect(await http.run(id, { code: recall })).toMatchObject({ stdout: '40\n' })
    expect((await http.send('POST', `/v1/sessions/${id}/restart`)).body).toMatchObject({ restarts: 1 })
    expect((await http.run(id, { code: recall })).stdout).not.toContain('40')
    await http.send('POST', `/v1/sessions/${id}/terminate`)
  })

  it('ends a step that takes too long, and answers the next one', async () => {
    const { id } = await http.open({ runtime, sandbox: sandbox.id })
    const late = await http.run(id, { code: loop, timeoutMs: 500 })
    expect(late).toMatchObject({ status: 'failed', error: { name: 'Timeout' } })
    expect(await http.run(id, { code: remember })).toMatchObject({ status: 'completed' })
    const { restarts } = await http.session(id)
    expect(restarts > 0).toBe(late.restarted)
    await http.send('POST', `/v1/sessions/${id}/terminate`)
  })
})

describe('a session of its own', () => {
  it('makes a sandbox and takes it along', async () => {
    const session = await http.open({ runtime: 'bash', create: { template: 'base' }, labels: { team: 'red' } })
    expect(session).toMatchObject({ ownsSandbox: true, labels: { team: 'red' } })
    const { body: page } = await http.send('GET', `/v1/sessions?sandbox=${session.sandbox}`)
    expect(page).toEqual({ items: [session], nextCursor: null })
    await http.send('POST', `/v1/sessions/${session.id}/terminate`)
    expect((await http.send('GET', `/v1/sandboxes/${session.sandbox}`)).body).toMatchObject({ state: 'stopped' })
  })

  it('expires by itself, with its sandbox, and says so', async () => {
    const session = await http.open({ runtime: 'bash', create: { template: 'base' }, ttlMs: 1000 })
    await waitFor(async () => ((await http.session(session.id)).state === 'active' ? undefined : true), soon())
    expect(await http.session(session.id)).toMatchObject({ state: 'expired', endReason: 'ttl' })
    expect(await http.refused('POST', stepsOf(session.id), { code: ':' })).toEqual([410, 'session_expired'])
    await waitFor(async () => {
      const { body } = await http.send<Sandbox>('GET', `/v1/sandboxes/${session.sandbox}`)
      return body.state === 'stopped' ? true : undefined
    }, soon())
  })

  it('ends when its sandbox is ended by another way', async () => {
    const session = await http.open({ runtime: 'bash', create: { template: 'base' } })
    await http.send('POST', `/v1/sandboxes/${session.sandbox}/terminate`, {})
    expect(await http.session(session.id)).toMatchObject({ state: 'terminated', endReason: 'sandbox_ended' })
  })

  it('is not made when the interpreter cannot start, and leaves no sandbox', async () => {
    const before = await http.send<{ items: Sandbox[] }>('GET', '/v1/sandboxes')
    expect(
      await http.refused('POST', '/v1/sessions', {
        runtime: 'bash',
        create: { template: 'base' },
        cwd: '/no/such/place',
      }),
    ).toEqual([404, 'file_not_found'])
    const after = await http.send<{ items: Sandbox[] }>('GET', '/v1/sandboxes')
    expect(after.body.items.map(({ id }) => id)).toEqual(before.body.items.map(({ id }) => id))
  })

  it('of nobody is not found', async () => {
    const id = 'ses_01k00000000000000000000000'
    expect(await http.refused('POST', stepsOf(id), { code: ':' })).toEqual([404, 'session_not_found'])
    expect(await http.refused('GET', `/v1/sessions/${id}`)).toEqual([404, 'session_not_found'])
  })
})

describe('a step id', () => {
  it('runs once, whoever asks how often, and answers the same to all', async () => {
    const { id } = await http.open({ runtime: 'bash', sandbox: sandbox.id })
    const step = { stepId: 'once', code: 'echo ran >> /workspace/once; sleep 0.2; cat /workspace/once' }
    const results = await Promise.all(Array.from({ length: 10 }, () => http.run(id, step)))
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1)
    expect(results[0]).toMatchObject({ status: 'completed', stdout: 'ran\n' })
    expect(await http.run(id, step)).toEqual(results[0])
    expect(await http.refused('POST', stepsOf(id), { ...step, code: 'true' })).toEqual([409, 'step_mismatch'])
    expect((await http.run(id, { code: 'wc -l < /workspace/once' })).stdout).toBe('1\n')
    await http.send('POST', `/v1/sessions/${id}/terminate`)
  })
})

describe('the events of a step', () => {
  it('can be read again from any of them, and say the same', async () => {
    const { id } = await http.open({ runtime: 'python', sandbox: sandbox.id })
    const code =
      'import sys\nfor i in range(3):\n  print(i, flush=True)\n  print(-i, file=sys.stderr, flush=True)\n7 * 6'
    const all = await Array.fromAsync(http.events('POST', stepsOf(id), { body: { code } }))
    const [first] = all
    if (first?.event.event !== 'started') throw new TypeError('no start')
    expect(all.at(-1)?.event).toMatchObject({ event: 'ended', step: { status: 'completed' } })
    const text = (stream: string) =>
      all.map(({ event }) => (event.event === 'output' && event.stream === stream ? event.text : '')).join('')
    expect([text('stdout'), text('stderr')]).toEqual(['0\n1\n2\n', '0\n-1\n-2\n'])
    expect(all.flatMap(({ event }) => (event.event === 'rich' ? [event.output] : []))).toEqual([
      { kind: 'result', data: { 'text/plain': '42' } },
    ])
    const path = `${stepsOf(id)}/${first.event.step.id}/output`
    for (const [at, { id: lastEventId }] of all.entries()) {
      if (lastEventId === undefined) continue
      const rest = await Array.fromAsync(http.events('GET', path, { lastEventId }))
      const said = (events: typeof all) => events.flatMap(({ event }) => (event.event === 'output' ? event.text : []))
      expect(said(rest).join('')).toBe(said(all.slice(at + 1)).join(''))
      expect(rest.filter(({ event }) => event.event === 'rich')).toEqual(
        all.slice(at + 1).filter(({ event }) => event.event === 'rich'),
      )
      expect(rest.at(-1)?.event).toEqual(all.at(-1)?.event)
    }
    await http.send('POST', `/v1/sessions/${id}/terminate`)
  })

  it('do not stop the step when their reader goes away', async () => {
    const { id } = await http.open({ runtime: 'bash', sandbox: sandbox.id })
    const gone = new AbortController()
    const body = { code: 'echo first; sleep 1; echo done > /workspace/done', stepId: 'left' }
    const events = http.events('POST', stepsOf(id), { body, signal: gone.signal })
    await events.next()
    gone.abort()
    await expect(Array.fromAsync(events)).rejects.toMatchObject({ name: 'AbortError' })
    expect(await http.run(id, body)).toMatchObject({ status: 'completed', stdout: 'first\n' })
    expect((await http.run(id, { code: 'cat /workspace/done' })).stdout).toBe('done\n')
    await http.send('POST', `/v1/sessions/${id}/terminate`)
  })
})

describe('many sessions at once', () => {
  it('20 of them keep to themselves, and none waits for the step of another', async () => {
    const { body: second } = await http.send<Sandbox>('POST', '/v1/sandboxes', { template: 'base' })
    const places = [sandbox.id, second.id]
    const opened = await Promise.all(
      Array.from({ length: 20 }, (_, at) => http.open({ runtime: 'bash', sandbox: places[at % 2] })),
    )
    const [slow, ...others] = opened
    if (!slow) throw new TypeError('no session')
    const slowStep = http.run(slow.id, { code: 'until [ -e /workspace/go ]; do sleep 0.05; done; echo went' })
    const totals = await Promise.all(
      others.map(async ({ id }, at) => {
        await http.run(id, { code: `n=${at}` })
        for (let round = 0; round < 5; round++) await http.run(id, { code: 'n=$((n + 1))' })
        return (await http.run(id, { code: 'echo $n' })).stdout
      }),
    )
    expect(totals).toEqual(others.map((_, at) => `${at + 5}\n`))
    // All others have ended while this one still waits for what only they can do now.
    const friend = others.find((session) => session.sandbox === slow.sandbox)
    await http.run(friend?.id ?? '', { code: 'touch /workspace/go' })
    expect(await slowStep).toMatchObject({ stdout: 'went\n' })
    await Promise.all(opened.map(({ id }) => http.send('POST', `/v1/sessions/${id}/terminate`)))
    await http.send('POST', `/v1/sandboxes/${second.id}/terminate`, {})
  })
})

describe('two sessions of one sandbox', () => {
  it('have outputs that the other cannot name', async () => {
    const [one, other] = await Promise.all([
      http.open({ runtime: 'bash', sandbox: sandbox.id }),
      http.open({ runtime: 'python', sandbox: sandbox.id }),
    ])
    const waits = 'echo began; until [ -e /workspace/tried ]; do sleep 0.05; done; echo ended'
    const step = http.run(one.id, { code: waits })
    const forge = `
import os
# The control: a name that is known can be written to.
own = os.open(os.readlink('/proc/self/fd/1'), os.O_WRONLY | os.O_NONBLOCK)
os.write(own, b'control\\n')
os.close(own)
opened = 0
for at in range(512):
    try:
        fd = os.open('/run/steps/output-%d' % at, os.O_WRONLY | os.O_NONBLOCK)
        opened += os.write(fd, b'forged\\n') > 0
        os.close(fd)
    except OSError: pass
try: listed = os.listdir('/run/steps')
except OSError as error: listed = error.strerror
open('/workspace/tried', 'w').close()
print(opened, listed)`
    const tried = await http.run(other.id, { code: forge })
    expect([(await step).stdout, tried.stdout]).toEqual(['began\nended\n', 'control\n0 Permission denied\n'])
    await Promise.all([one, other].map(({ id }) => http.send('POST', `/v1/sessions/${id}/terminate`)))
  })
})

describe('what a step used', () => {
  it('is more for one that works than for one that waits, and is told only where it can be told apart', async () => {
    const { id, sandbox: own } = await http.open({ runtime: 'python', create: { template: 'base' } })
    const idle = await http.run(id, { code: 'import time; time.sleep(0.2)' })
    const busy = await http.run(id, { code: 'sum(i * i for i in range(3_000_000))' })
    expect(busy.resourceUsage?.cpuMs).toBeGreaterThan((idle.resourceUsage?.cpuMs ?? Infinity) + 20)
    // On hosts that count only the whole sandbox, company makes it untellable; elsewhere it changes nothing.
    const other = await http.open({ runtime: 'bash', sandbox: own })
    const accompanied = await http.run(id, { code: '1' })
    expect([null, 'number']).toContain(
      accompanied.resourceUsage === null ? null : typeof accompanied.resourceUsage.cpuMs,
    )
    await http.send('POST', `/v1/sessions/${other.id}/terminate`)
    await http.send('POST', `/v1/sessions/${id}/terminate`)
  })
})

describe('the evidence of a session', () => {
  it('holds what was asked and how it ended, and of code no more than its first words', async () => {
    const session = await http.open({ runtime: 'bash', create: { template: 'base' } })
    const code = `: ${'x'.repeat(300)} UNSEEN; echo out`
    const step = await http.run(session.id, { code, env: { NAME: 'UNSEEN' }, stdin: 'UNSEEN' })
    await http.send('POST', `/v1/sessions/${session.id}/terminate`)
    const path = `/v1/audit/events?sandbox=${session.sandbox}&limit=100`
    const admin = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${server.adminKey}` } })
    const { items } = (await admin.json()) as { items: AuditRecord[] }
    const story = items.toReversed().map((record) => `${record.point} ${record.status}`)
    expect(story.filter((line) => /^(?:session|step)/.test(line))).toEqual([
      'session.create requested',
      'session.create done',
      'step.run requested',
      'step.run done',
      'session.end done',
    ])
    const done = items.find((record) => record.point === 'step.run' && record.status === 'done')
    expect(done?.payload).toMatchObject({ step: step.id, session: session.id, outputBytes: 4 })
    expect(JSON.stringify(items)).not.toContain('UNSEEN')
  })
})
