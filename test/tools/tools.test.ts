import type { Sandbox } from '@airlock/sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import {
  allow,
  answer,
  callRecords,
  callTool,
  CANARY,
  CLIENT,
  ISSUE,
  issueTool,
  startToolServer,
  type ToolServer,
} from './support.ts'

const NEEDS = requires('root')
const DENIED = 'airlock-tool: This call is not allowed. (policy_denied)'

let world: ToolServer
let box: Sandbox

beforeAll(async () => {
  world = await startToolServer()
}, 240_000)
afterAll(async () => world?.stop())

beforeEach(async () => {
  await world.admin.tools.put('issue', issueTool(world.origin))
  await allow(world.admin, 'issue')
  box = await world.developer.sandboxes.create({ doors: ['broker'] })
})
afterEach(async () => box?.terminate())

const requests = async () => (await world.service.seen()).requests

describe('a sandbox with the broker door', NEEDS, () => {
  it('calls a service with a credential that it never sees, and each call is in the evidence', async () => {
    await world.service.next(answer('200 OK', '{"title":"broken"}'))
    const { exitCode, out, err } = await callTool(box, 'issue', { ...ISSUE, state: 'open & shut' })
    expect([exitCode, out, err]).toEqual([0, '{"title":"broken"}', ''])
    const head = (await requests()).at(-1)?.head ?? ''
    expect(head).toContain('GET /repos/acme/tools/issues/7?state=open%20%26%20shut HTTP/1.1\r\n')
    expect(head).toContain(`authorization: Bearer ${CANARY}\r\n`)
    await expect.poll(async () => (await callRecords(world.admin, box.id)).length).toBe(2)
    const [requested, done] = await callRecords(world.admin, box.id)
    expect(requested).toMatchObject({ status: 'requested', actor: `sandbox:${box.id}` })
    expect(done).toMatchObject({
      status: 'done',
      payload: { tool: 'issue', count: 1, origin: world.origin, httpStatus: 200, received: 18 },
    })
  })

  it('lists the tools that rules name, with their parameters', async () => {
    await world.admin.tools.put('hidden', issueTool(world.origin))
    const { stdout } = await box.run(['airlock-tool', '--list'])
    expect(JSON.parse(stdout)).toMatchObject([
      { name: 'issue', description: 'Reads an issue.', parameters: { required: ['owner', 'repo', 'number'] } },
    ])
  })

  it('sends parameters of a body as JSON, and a credential for basic authentication', async () => {
    await world.admin.tools.put(
      'comment',
      issueTool(world.origin, {
        method: 'POST',
        path: '/repos/acme/tools/issues/7/comments',
        query: [],
        body: ['text'],
        parameters: { properties: { text: { type: 'string', maxLength: 100 } }, required: ['text'] },
        scope: ['/repos/acme/tools/issues/7/comments'],
        headers: { 'x-api-version': '3' },
        credential: { secret: 'service', basicUser: 'robot' },
      }),
    )
    await allow(world.admin, 'comment')
    await world.service.next(answer('201 Created', 'noted', 'content-type: text/plain\r\n'))
    expect((await callTool(box, 'comment', { text: 'é "quoted"' })).out).toBe('noted')
    const { head = '', body } = (await requests()).at(-1) ?? {}
    expect(head).toContain(`authorization: Basic ${Buffer.from(`robot:${CANARY}`).toString('base64')}\r\n`)
    expect(head).toContain('x-api-version: 3\r\n')
    expect(body).toBe('{"text":"é \\"quoted\\""}')
  })

  it('is denied an unknown tool, a tool without a rule, and a path out of scope, with one text', async () => {
    await world.admin.tools.put('other', issueTool(world.origin))
    const before = (await requests()).length
    const said = [
      await callTool(box, 'absent'),
      await callTool(box, 'other'),
      await callTool(box, 'issue', { ...ISSUE, owner: 'evil' }),
    ]
    expect(new Set(said.map(({ err }) => err.split('\n')[0]))).toEqual(new Set([DENIED]))
    expect(said.map(({ exitCode, out }) => [exitCode, out])).toEqual(said.map(() => [1, '']))
    await expect.poll(async () => (await callRecords(world.admin, box.id)).length).toBe(3)
    const records = await callRecords(world.admin, box.id)
    expect(records.map(({ status, error, payload }) => [status, error?.code, payload['count']])).toEqual([
      ['denied', 'tool_not_found', 1],
      ['denied', 'policy_denied', 2],
      ['denied', 'out_of_scope', 3],
    ])
    expect((await requests()).length).toBe(before)
    // The positive control.
    expect((await callTool(box, 'issue')).exitCode).toBe(0)
  })

  it('is told which parameter is wrong once a rule names the tool', async () => {
    const { err } = await callTool(box, 'issue', { ...ISSUE, number: 'seven' })
    expect(err).toContain('params.number must be an integer. (invalid_request)')
  })

  it('gets no tool by a default that allows everything, and none without the door', async () => {
    await world.admin.policies.put({ name: 'tools', default: 'allow', rules: [] })
    expect((await callTool(box, 'issue')).err).toContain(DENIED)
    await allow(world.admin, 'issue')
    const plain = await world.developer.sandboxes.create()
    expect((await callTool(plain, 'issue')).err).toContain('this sandbox has no broker door')
    await plain.terminate()
  })

  it('sends nothing outside of the scope, for whatever text is a part of a path', async () => {
    const before = (await requests()).length
    const texts = TRAVERSALS.flatMap((text) => [
      { ...ISSUE, repo: text },
      { ...ISSUE, owner: text },
    ])
    await box.files.write('calls.json', JSON.stringify(texts))
    const { stdout } = await box.run(['/opt/airlock/bin/node', '-e', CALL_ALL])
    expect(JSON.parse(stdout)).toEqual(texts.map(() => 'policy_denied'))
    expect((await requests()).length).toBe(before)
    // Odd texts that are one part of a path arrive as that part.
    expect((await callTool(box, 'issue', { ...ISSUE, repo: 'a b.c..d~é&=+@' })).exitCode).toBe(0)
    expect((await requests()).at(-1)?.head).toContain('GET /repos/acme/a%20b.c..d~%C3%A9%26%3D%2B%40/issues/7 HTTP/1.1')
  })

  it('is not led elsewhere by a redirect', async () => {
    const before = (await requests()).length
    await world.service.next(answer('302 Found', '', `location: ${world.origin}/elsewhere\r\n`))
    expect((await callTool(box, 'issue')).err).toContain('answered with a redirect (302), and none is followed')
    expect((await requests()).length).toBe(before + 1)
  })

  it('never gets the credential back, however the service repeats it', async () => {
    const base64 = Buffer.from(CANARY).toString('base64')
    const repeats = [CANARY, `x${base64}`, encodeURIComponent(CANARY), Buffer.from(CANARY).toString('hex')]
    for (const repeated of repeats) {
      await world.service.next(answer('200 OK', JSON.stringify({ headers: { authorization: `Bearer ${repeated}` } })))
      const { out, err } = await callTool(box, 'issue')
      expect([out, err.includes('(secret_in_answer)')]).toEqual(['', true])
    }
    await world.service.next(answer('200 OK', '{}', `content-type: application/json\r\netag: "${CANARY}"\r\n`))
    expect((await callTool(box, 'issue')).err).toContain('(secret_in_answer)')
  })

  it('does not send a call that holds the value of its credential, plain or encoded', async () => {
    const before = (await requests()).length
    const encoded = [CANARY, Buffer.from(`x=${CANARY}`).toString('base64'), Buffer.from(CANARY).toString('hex')]
    for (const text of encoded)
      expect((await callTool(box, 'issue', { ...ISSUE, state: text })).err.split('\n')[0]).toBe(DENIED)
    expect((await requests()).length).toBe(before)
    await expect
      .poll(async () =>
        (await callRecords(world.admin, box.id)).filter(({ error }) => error?.code === 'secret_in_call'),
      )
      .toHaveLength(encoded.length)
  })

  it('gets at most so many bytes, and no answer that is encoded', async () => {
    await world.admin.tools.put('issue', issueTool(world.origin, { maxAnswerBytes: 100 }))
    await world.service.next(answer('200 OK', 'x'.repeat(101)))
    expect((await callTool(box, 'issue')).err).toContain('The answer has more than 100 bytes. (service_broken)')
    await world.service.next(answer('200 OK', 'x', 'content-encoding: gzip\r\n'))
    expect((await callTool(box, 'issue')).err).toContain('an encoding that was not asked for')
  })

  it('waits no longer for a service than the tool allows', async () => {
    await world.admin.tools.put('issue', issueTool(world.origin, { timeoutMs: 300 }))
    await world.service.next({ wait: 'never' })
    expect((await callTool(box, 'issue')).err).toContain('(service_timeout)')
  })
})

/** Texts by which a path could leave its place. */
const TRAVERSALS =
  String.raw`. .. / a/b ../.. ..\.. a\b %2e%2e %2E%2E%2F %252e%252e %2f %5c ..%2f ..; ;a=b ?x=1 #x a?b a#b %00 % ..%c0%af`
    .split(' ')
    .concat(
      '',
      '\0',
      'a\r\nX: 1',
      '\t',
      '\u2044..',
      '\uff0e\uff0e',
      '\uff0f',
      '\u2215',
      '\u202e',
      '\u200b',
      '..\0',
      '\u2024\u2024',
    )

const CALL_ALL = `${CLIENT}
(async () => {
  const codes = [];
  for (const params of JSON.parse(readFileSync('calls.json'))) {
    const { ok, error } = await call('issue', params);
    codes.push(ok ? 'ok' : error.code);
    await new Promise((done) => setTimeout(done, 5));
  }
  console.log(JSON.stringify(codes)); process.exit();
})()`
