import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../../../../../test/support/requires.ts'
import { type AgentReply, TestAgent } from './testing/test-agent.ts'

describe('the session agent', requires('root'), () => {
  let agent: TestAgent
  beforeAll(async () => {
    agent = await TestAgent.start()
  })
  afterAll(() => agent.stop())

  const register = async (change: object = {}) => {
    const token = randomBytes(16).toString('hex')
    const body = { sessionId: randomBytes(8).toString('hex'), runtime: 'bash', workspaceDir: agent.work, ...change }
    const reply = await agent.call('POST', '/v1/sessions', { token, body })
    return { token, body, reply }
  }
  const step = async (token: string, body: object) => await agent.call('POST', '/v1/steps', { token, body })
  const terminate = async (token: string, sessionId: string) =>
    await agent.call('POST', `/v1/sessions/${sessionId}/terminate`, { token })

  it('says that it is there, and how strong it is, to anybody', async () => {
    expect(await agent.call('GET', '/v1/health')).toEqual({
      status: 200,
      body: { status: 'ok', user: agent.uid, groups: 'process sessions' },
    })
  })

  it('registers a session, runs steps in it as another user, and terminates it', async () => {
    const { token, body, reply } = await register({ token: undefined })
    const { sessionId } = body
    expect(reply).toEqual({ status: 200, body: { sessionId, status: 'registered' } })
    expect(await step(token, { sessionId, stepId: '1', code: 'id -u' })).toEqual(
      ok({ stepId: '1', status: 'completed', exitCode: 0, stdout: `${agent.uid}\n` }),
    )
    expect(await step(token, { sessionId, stepId: '2', code: 'exit 3', runtime: 'bash' })).toEqual(
      ok({
        stepId: '2',
        status: 'failed',
        exitCode: 1,
        error: { name: 'ExitStatus', message: 'exit status 3', traceback: '' },
      }),
    )
    expect(await terminate(token, sessionId)).toEqual({ status: 200, body: { sessionId, status: 'terminated' } })
    expect(codeOf(await step(token, { sessionId, stepId: '3', code: ':' }))).toEqual([404, 'session_not_found'])
  })

  it('takes no request without the token of the session', async () => {
    const { token, body } = await register()
    const { sessionId } = body
    const other = randomBytes(16).toString('hex')
    const request = { sessionId, stepId: '1', code: ':' }
    expect(codeOf(await agent.call('POST', '/v1/sessions', { body }))).toEqual([401, 'unauthenticated'])
    expect(codeOf(await agent.call('POST', '/v1/steps', { body: request }))).toEqual([401, 'unauthenticated'])
    expect(codeOf(await step(other, request))).toEqual([401, 'unauthenticated'])
    expect(codeOf(await terminate(other, sessionId))).toEqual([401, 'unauthenticated'])
    expect(codeOf(await agent.call('POST', `/v1/sessions/${sessionId}/interrupt`))).toEqual([401, 'unauthenticated'])
    await terminate(token, sessionId)
  })

  it('lets nobody take a session over, nor change its runtime', async () => {
    const { token, body } = await register()
    await step(token, { sessionId: body.sessionId, stepId: '1', code: 'x=1' })
    const again = async (as: string, change: object = {}) =>
      await agent.call('POST', '/v1/sessions', { token: as, body: { ...body, ...change } })
    expect(codeOf(await again(randomBytes(16).toString('hex')))).toEqual([401, 'unauthenticated'])
    expect(codeOf(await again(token, { token: randomBytes(16).toString('hex') }))).toEqual([400, 'invalid_request'])
    expect(codeOf(await again(token, { runtime: 'node' }))).toEqual([409, 'runtime_mismatch'])
    expect((await again(token, { token })).status).toBe(200)
    const asNode = { sessionId: body.sessionId, stepId: '2', code: '1', runtime: 'node' }
    expect(codeOf(await step(token, asNode))).toEqual([409, 'runtime_mismatch'])
    expect(await step(token, { sessionId: body.sessionId, stepId: '2', code: 'echo $x' })).toEqual(
      ok({ stepId: '2', status: 'completed', exitCode: 0, stdout: '1\n' }),
    )
    await terminate(token, body.sessionId)
  })

  it('answers a step id that it knows with the first result, and refuses it for another step', async () => {
    const { token, body } = await register()
    const { sessionId } = body
    const first = { sessionId, stepId: 'a', code: 'n=$((n + 1)); sleep 0.2; echo $n' }
    const replies = await Promise.all([step(token, first), step(token, first), step(token, first)])
    const expected = ok({ stepId: 'a', status: 'completed', exitCode: 0, stdout: '1\n' })
    expect(replies).toEqual([expected, expected, expected])
    expect(await step(token, first)).toEqual(expected)
    expect(codeOf(await step(token, { ...first, code: 'echo 2' }))).toEqual([409, 'step_conflict'])
    expect(codeOf(await step(token, { ...first, stdin: 'other' }))).toEqual([409, 'step_conflict'])
    await terminate(token, sessionId)
  })

  it('refuses what does not fit, by name', async () => {
    const token = randomBytes(16).toString('hex')
    const bodies = [
      ['not json', 'the body is not JSON'],
      [{ sessionId: 'a' }, 'runtime must be python, node or bash'],
      [{ sessionId: 'a', runtime: 'ruby' }, 'runtime must be python, node or bash'],
      [{ sessionId: '../a', runtime: 'bash' }, 'sessionId must be 1 to 128 letters, digits, ".", ":", "-" or "_"'],
      [{ sessionId: 'a', runtime: 'bash', more: 1 }, '"more" is not known'],
      [{ sessionId: 'a', runtime: 'bash', workspaceDir: 'here' }, 'workspaceDir must be an absolute path'],
    ] as const
    for (const [body, message] of bodies)
      expect(await agent.call('POST', '/v1/sessions', { token, body })).toMatchObject({
        status: 400,
        body: { error: { code: 'invalid_request', message, retryable: false } },
      })
    const missing = { sessionId: 'a', runtime: 'bash', workspaceDir: '/nowhere' }
    expect(codeOf(await agent.call('POST', '/v1/sessions', { token, body: missing }))).toEqual([400, 'invalid_request'])
    expect(codeOf(await agent.call('POST', '/v1/other', { token }))).toEqual([404, 'route_not_found'])
    expect(codeOf(await agent.call('GET', '/v1/sessions', { token }))).toEqual([404, 'route_not_found'])
  })

  it('reads no more of a body than it may', async () => {
    const token = randomBytes(16).toString('hex')
    const body = { sessionId: 'a', stepId: 'a', code: 'x'.repeat(5 * 1024 * 1024) }
    expect(codeOf(await agent.call('POST', '/v1/steps', { token, body }))).toEqual([413, 'body_too_large'])
    expect((await agent.call('GET', '/v1/health')).status).toBe(200)
  })

  it('opens a bounded number of sessions', async () => {
    const opened = []
    for (let at = 0; at < 16; at++) opened.push(await register())
    expect(opened.map(({ reply }) => reply.status)).toEqual(Array.from({ length: 16 }, () => 200))
    const { reply } = await register()
    expect(codeOf(reply)).toEqual([429, 'too_many_sessions'])
    await Promise.all(opened.map(({ token, body }) => terminate(token, body.sessionId)))
    const after = await register()
    expect(after.reply.status).toBe(200)
    await terminate(after.token, after.body.sessionId)
  })

  it('leaves no process of user code behind, not even one that left its session', async () => {
    const { token, body } = await register()
    const code = 'sleep 300 & setsid sh -c "setsid sleep 300 & setsid sleep 300" & echo begun'
    await step(token, { sessionId: body.sessionId, stepId: '1', code })
    await terminate(token, body.sessionId)
    while (processesOf(agent.uid).length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(processesOf(agent.uid)).toEqual([])
  })
})

describe('a session agent that cannot run user code as somebody else', requires('root'), () => {
  it.each([
    { why: 'user code would be root', user: { uid: 0, gid: 0 } },
    { why: 'user code would have the group of root', user: { uid: 61_000, gid: 0 } },
  ])('does not start: $why', async ({ user }) => {
    const agent = await TestAgent.start({ user })
    expect([agent.exitCode, agent.said]).toEqual([1, expect.stringContaining('must have a uid and a gid of its own')])
    await agent.stop()
  })

  it('does not start where it has no right to change its uid', async () => {
    const agent = await TestAgent.start({}, ['/usr/bin/setpriv', '--bounding-set=-setuid', '--inh-caps=-setuid', '--'])
    expect([agent.exitCode, agent.said]).toEqual([1, expect.stringContaining('cannot run user code as')])
    await agent.stop()
  })
})

function ok(body: object): AgentReply {
  return { status: 200, body: { stdout: '', stderr: '', outputs: [], restarted: false, truncated: false, ...body } }
}

function codeOf({ status, body }: AgentReply): readonly [number, unknown] {
  return [status, (body as { readonly error?: { readonly code?: string } }).error?.code]
}

function processesOf(uid: number): readonly string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && ownerOf(name) === uid)
}

/** Nobody's once it is dead: who inherits orphans need not wait for them, as the first process of a container does not. */
function ownerOf(pid: string): number | undefined {
  try {
    const isDead = /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    return isDead ? undefined : statSync(`/proc/${pid}`).uid
  } catch {
    // It has gone meanwhile.
    return undefined
  }
}
