import type { Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CLI, CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { connectHttp, errorOf, REVISIONS } from '../mcp/client.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { append, appended, Asking, denying, needed, refusal, RULES } from './asking.ts'

let server: TestServer
let asking: Asking
let sandbox: Sandbox
/** Each test has its own: what one approves is nothing to the others. */
let agent: string
let agents = 0

beforeAll(async () => {
  server = await startServer()
  asking = await Asking.on(server)
  await asking.admin.agents.register('other', { approve: true })
}, 240_000)

beforeEach(async () => {
  await asking.policy()
  agent = `asking-${++agents}`
  await asking.admin.agents.register(agent, { approve: true })
  sandbox = await asking.developer.sandboxes.create({ agent })
  return async () => void (await sandbox.terminate())
})

afterAll(async () => server?.stop())

describe('an ask', () => {
  it('is refused with an id and the command that answers it, and nothing happens', async () => {
    const error = await refusal(append(sandbox))
    const id = error.approval ?? ''
    expect(error).toMatchObject({
      code: 'approval_required',
      status: 428,
      retryable: false,
      message: 'A person must approve it: The tests ask about append. (asks/append)',
      hint: `Let somebody else answer with "airlock approvals approve ${id}", then ask for exactly the same again.`,
    })
    expect(await appended(sandbox)).toBe(0)
    const { actor } = await asking.developer.whoami()
    expect(await asking.operator.approvals.get(id)).toMatchObject({
      id,
      tenant: 'default',
      requester: actor,
      agent,
      sandbox: sandbox.id,
      point: 'command.run',
      state: 'pending',
      scope: null,
      answeredBy: null,
      answeredAt: null,
      note: null,
      usedAt: null,
      summary: 'command.run: tee -a /workspace/log',
      decision: { effect: 'ask', risk: 'high', rules: [{ policy: 'asks', rule: 'append', effect: 'ask' }] },
      question: { operation: { kind: 'command', argv: ['tee', '-a', '/workspace/log'], env: [] } },
    })
    expect(server.logs()).toContain(`approvals approve ${id}`)
  })

  it('lets the same request pass once when it is approved, and is no use after that', async () => {
    const id = await needed(append(sandbox))
    const approved = await asking.operator.approvals.approve(id, { note: 'go on' })
    expect(approved).toMatchObject({ id, state: 'approved', scope: 'once', note: 'go on' })
    await append(sandbox)
    expect(await appended(sandbox)).toBe(1)
    expect(await asking.operator.approvals.get(id)).toMatchObject({ state: 'used' })
    expect(await needed(append(sandbox))).not.toBe(id)
    expect(await appended(sandbox)).toBe(1)
  })

  it('is joined by the same request, so that a person is asked once', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, async () => needed(append(sandbox))))
    expect(new Set(ids).size).toBe(1)
  })

  it('passes one of several requests that come at once', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id)
    const all = await Promise.allSettled(Array.from({ length: 5 }, async () => append(sandbox)))
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await appended(sandbox)).toBe(1)
  })

  it('that was rejected denies the same request, with the reason', async () => {
    const id = await needed(append(sandbox))
    expect(await asking.operator.approvals.reject(id, { note: 'not today' })).toMatchObject({ state: 'rejected' })
    const error = await refusal(append(sandbox))
    const { actor } = await asking.operator.whoami()
    expect(error).toMatchObject({ code: 'policy_denied', message: `${actor} rejected it (${id}): not today` })
    expect(await appended(sandbox)).toBe(0)
  })

  it('is refused when a hundred of the agent wait already', async () => {
    const other = await asking.developer.sandboxes.create({ agent: 'other' })
    const ask = async (n: number) => refusal(append(other, {}, `log-${n}`))
    for (let n = 0; n < 100; n += 10)
      await Promise.all(Array.from({ length: 10 }, async (_, i) => needed(append(other, {}, `log-${n + i}`))))
    expect(await ask(100)).toMatchObject({ code: 'policy_denied' })
    expect(await ask(5)).toMatchObject({ code: 'approval_required' })
    await other.terminate()
    const { items } = await asking.admin.approvals.list({ agent: 'other', limit: 200 })
    for (const { id } of items) asking.expire(id)
  })
})

describe('an approval is for exactly the request that was asked', () => {
  const changes: Readonly<Record<string, () => Promise<unknown>>> = {
    'one byte of its arguments': async () => append(sandbox, {}, 'lo9'),
    'one byte of its stdin': async () => append(sandbox, { stdin: { text: 'y\n' } }),
    'the name of a variable': async () => append(sandbox, { env: { B: '1' } }),
    'the value of a variable': async () => append(sandbox, { env: { A: '2' } }),
    'its directory': async () => append(sandbox, { cwd: '/tmp' }),
    'its time': async () => append(sandbox, { timeoutMs: 1234 }),
  }
  it.each(Object.entries(changes))('and not with another %s', async (_, change) => {
    const base = { env: { A: '1' } }
    const id = await needed(append(sandbox, base))
    await asking.operator.approvals.approve(id)
    expect(await needed(change())).not.toBe(id)
    expect([await appended(sandbox), await appended(sandbox, 'lo9')]).toEqual([0, 0])
    await append(sandbox, base)
    expect(await appended(sandbox)).toBe(1)
  })

  it('and not with input that is sent to it later, which nobody saw', async () => {
    const start = async () => sandbox.start(['tee', '-a', '/workspace/log'], { stdin: 'open' })
    await asking.operator.approvals.approve(await needed(start()))
    const command = await start()
    expect(await refusal(command.write('unseen\n'))).toMatchObject({ code: 'policy_denied' })
    await command.end()
    expect(await command.wait()).toMatchObject({ exitCode: 0 })
    expect(await appended(sandbox)).toBe(0)
  })

  it('and not beside something else in a sandbox that is made for one run', async () => {
    const make = async () => asking.developer.sandboxes.create({ agent, ephemeral: true })
    const first = await make()
    const id = await needed(append(first))
    await asking.operator.approvals.approve(id)
    const changed = await make()
    await changed.files.write('log', 'another')
    expect(await needed(append(changed))).not.toBe(id)
    const second = await make()
    await append(second)
    expect(await refusal(second.files.write('log', 'another'))).toMatchObject({ code: 'policy_denied' })
    expect(await refusal(second.run(['true']))).toMatchObject({ code: 'policy_denied' })
    expect(await second.files.readText('log')).toBe('x\n')
    for (const one of [first, changed, second]) await one.terminate()
  })

  it('and not in another sandbox, for another agent, or by another key', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id)
    const second = await asking.developer.sandboxes.create({ agent })
    const foreign = await asking.developer.sandboxes.create({ agent: 'other' })
    const colleague = await (await asking.key({ role: 'developer' })).sandboxes.get(sandbox.id)
    for (const wrong of [second, foreign, colleague]) expect(await needed(append(wrong))).not.toBe(id)
    for (const one of [sandbox, second, foreign]) expect(await appended(one)).toBe(0)
    await second.terminate()
    await foreign.terminate()
  })

  it('and not with another byte of code', async () => {
    const session = await asking.developer.sessions.create({ sandbox: sandbox.id, runtime: 'python' })
    const id = await needed(session.run('ask_me=1; print(ask_me)'))
    await asking.operator.approvals.approve(id)
    expect(await needed(session.run('ask_me=2; print(ask_me)'))).not.toBe(id)
    expect((await session.run('ask_me=1; print(ask_me)')).stdout).toBe('1\n')
    expect(await needed(session.run('ask_me=1; print(ask_me)'))).not.toBe(id)
  })

  it('and not with other bytes of an upload, which are read before anybody is asked', async () => {
    const content = 'a'.repeat(100_000)
    const id = await needed(sandbox.files.write('asked-file', content))
    await asking.operator.approvals.approve(id)
    expect(await needed(sandbox.files.write('asked-file', `${content.slice(1)}b`))).not.toBe(id)
    await sandbox.files.write('asked-file', content)
    const read = Buffer.from(await sandbox.files.read('asked-file'))
    expect(sha256(read)).toBe(sha256(Buffer.from(content)))
    const large = await refusal(sandbox.files.write('asked-large', Buffer.alloc(16 * 1024 * 1024 + 1)))
    expect(large).toMatchObject({ code: 'policy_denied' })
    expect(large.message).toContain('16 MiB')
  })

  it('and holds for what is only a request, such as more time', async () => {
    const id = await needed(sandbox.extend(60_000))
    await asking.operator.approvals.approve(id)
    expect(await needed(sandbox.extend(61_000))).not.toBe(id)
    await sandbox.extend(60_000)
    expect(await needed(sandbox.extend(60_000))).not.toBe(id)
  })
})

describe('a sandbox that is asked for', () => {
  it('is made once, when it is approved', async () => {
    const create = async (pids: number) => asking.developer.sandboxes.create({ agent, limits: { pids } })
    const id = await needed(create(400))
    expect(await asking.operator.approvals.get(id)).toMatchObject({ point: 'sandbox.create', sandbox: null })
    const wrong = asking.operator.approvals.approve(id, { scope: 'sandbox' })
    expect(await refusal(wrong)).toMatchObject({ code: 'invalid_request' })
    await asking.operator.approvals.approve(id)
    expect(await needed(create(401))).not.toBe(id)
    const made = await create(400)
    expect(made.data.limits.pids).toBe(400)
    expect(await needed(create(400))).not.toBe(id)
    await made.terminate()
  })
})

describe('who may answer', () => {
  it('is never who asked, by that key or by one that took over from it', async () => {
    const { key, secret } = await asking.admin.keys.create({ name: 'both', role: 'operator' })
    const self = asking.with(secret)
    const id = await needed(append(await self.sandboxes.get(sandbox.id)))
    const successor = asking.with((await asking.admin.keys.rotate(key.id)).secret)
    for (const one of [self, successor])
      for (const answer of ['approve', 'reject'] as const)
        expect(await refusal(one.approvals[answer](id))).toMatchObject({
          code: 'forbidden',
          message:
            'Who asked for it does not answer it, nor does a key of the same person or one that was made by who asked.',
        })
    expect(await asking.operator.approvals.approve(id)).toMatchObject({ state: 'approved' })
  })

  it('is not a second key that who asked has made', async () => {
    const second = await asking.key({ role: 'admin' })
    const id = await needed(append(await asking.admin.sandboxes.get(sandbox.id)))
    expect(await refusal(second.approvals.approve(id))).toMatchObject({ code: 'forbidden' })
    const own = await needed(append(await second.sandboxes.get(sandbox.id)))
    const third = asking.with((await second.keys.create({ name: 'third', role: 'admin' })).secret)
    expect(await refusal(third.approvals.approve(own))).toMatchObject({ code: 'forbidden' })
    expect(await asking.admin.approvals.approve(own)).toMatchObject({ state: 'approved' })
  })

  it('is not another key of the same person, though somebody else made both', async () => {
    const ofPerson = async (person: string) => asking.key({ role: 'admin', person })
    const [asks, answers, control] = [
      await ofPerson('ann@example.com'),
      await ofPerson('ann@example.com'),
      await ofPerson('bob'),
    ]
    const id = await needed(append(await asks.sandboxes.get(sandbox.id)))
    expect(await refusal(answers.approvals.approve(id))).toMatchObject({ code: 'forbidden' })
    expect(await control.approvals.approve(id)).toMatchObject({ state: 'approved' })
  })

  it('is never a key that is bound to agents, whatever its role, nor a developer or an auditor', async () => {
    const id = await needed(append(sandbox))
    const bound = await asking.key({ role: 'operator', agents: [agent] })
    const elsewhere = await asking.key({ role: 'operator', agents: ['other'] })
    const others = [await asking.key({ role: 'developer' }), await asking.key({ role: 'auditor' }), bound]
    for (const { approvals } of others) {
      expect((await approvals.get(id)).state).toBe('pending')
      for (const answer of ['approve', 'reject', 'revoke'] as const)
        expect(await refusal(approvals[answer](id))).toMatchObject({ code: 'forbidden' })
    }
    expect(await refusal(elsewhere.approvals.approve(id))).toMatchObject({ code: 'approval_not_found' })
    expect((await asking.admin.approvals.get(id)).state).toBe('pending')
  })

  it('is an admin where it is critical', async () => {
    const id = await needed(sandbox.run(['critical-thing']))
    expect(await refusal(asking.operator.approvals.approve(id))).toMatchObject({ code: 'forbidden' })
    expect(await asking.admin.approvals.approve(id)).toMatchObject({ state: 'approved' })
  })

  it('is one of two who answer at once, and the other is told', async () => {
    for (let round = 0; round < 5; round++) {
      const id = await needed(append(sandbox, {}, `round-${round}`))
      const all = await Promise.allSettled([
        asking.operator.approvals.approve(id),
        asking.admin.approvals.reject(id),
        asking.admin.approvals.approve(id),
      ])
      const answered = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
      const late = all.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
      expect(answered).toHaveLength(1)
      const { state, answeredBy } = await asking.admin.approvals.get(id)
      expect(answered[0]).toMatchObject({ state, answeredBy })
      const message = expect.stringContaining(`${state} by ${answeredBy}`) as unknown
      for (const error of late) expect(error).toMatchObject({ code: 'approval_ended', status: 409, message })
    }
  })

  it('is too late when nobody answered in time: that is a no', async () => {
    const id = await needed(append(sandbox))
    asking.expire(id)
    expect(await refusal(asking.operator.approvals.approve(id))).toMatchObject({
      code: 'approval_ended',
      message: 'The approval is expired.',
    })
    expect(await needed(append(sandbox))).not.toBe(id)
    expect(await appended(sandbox)).toBe(0)
  })
})

describe('an approval ends', () => {
  it('when it is not used in time', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id)
    asking.expire(id)
    expect(await needed(append(sandbox))).not.toBe(id)
    expect(await appended(sandbox)).toBe(0)
    const state = async () => ((await asking.admin.approvals.get(id)).state === 'expired' ? true : undefined)
    await waitFor(state, { signal: deadline(100_000), everyMs: 50 })
  })

  it('when it is taken back', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id)
    expect(await asking.admin.approvals.revoke(id)).toMatchObject({ state: 'revoked' })
    expect(await refusal(asking.admin.approvals.revoke(id))).toMatchObject({ code: 'approval_ended' })
    expect(await needed(append(sandbox))).not.toBe(id)
  })

  it('never stands against a rule that denies', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id, { scope: 'agent' })
    await append(sandbox)
    await asking.policy(denying('append'))
    expect(await refusal(append(sandbox))).toMatchObject({ code: 'policy_denied' })
    expect(await appended(sandbox)).toBe(1)
  })

  it('when a rule asks that who approved it did not see, and not when something else changes', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id, { scope: 'agent' })
    const unrelated = { id: 'unrelated', kind: 'command', effect: 'deny', risk: 'low', reason: 'No.' } as const
    await asking.policy([...RULES, { ...unrelated, match: { programs: ['unrelated'] } }])
    await append(sandbox)
    await asking.policy([...RULES, { ...unrelated, id: 'new', effect: 'ask', match: { programs: ['tee'] } }])
    const second = await needed(append(sandbox))
    expect(second).not.toBe(id)
    const { decision } = await asking.operator.approvals.get(second)
    expect(decision.rules.map(({ rule }) => rule).toSorted()).toEqual(['append', 'new'])
    expect(await appended(sandbox)).toBe(1)
  })
})

describe('a scope', () => {
  it('of a sandbox lets the same pass again in it, and nowhere else', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id, { scope: 'sandbox' })
    for (let times = 0; times < 3; times++) await append(sandbox)
    const second = await asking.developer.sandboxes.create({ agent })
    await needed(append(second))
    expect([await appended(sandbox), await appended(second)]).toEqual([3, 0])
    await second.terminate()
    await asking.admin.approvals.revoke(id)
    await needed(append(sandbox))
  })

  it('of an agent lets the same pass in all of its sandboxes, and for no other agent', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id, { scope: 'agent' })
    const second = await asking.developer.sandboxes.create({ agent })
    const foreign = await asking.developer.sandboxes.create({ agent: 'other' })
    await append(sandbox)
    await append(second)
    await needed(append(foreign))
    await needed(append(second, {}, 'lo9'))
    expect([await appended(sandbox), await appended(second), await appended(foreign)]).toEqual([1, 1, 0])
    await second.terminate()
    await foreign.terminate()
    await asking.admin.approvals.revoke(id)
  })

  it('until a time ends then', async () => {
    const id = await needed(append(sandbox))
    const { approvals } = asking.operator
    expect(await refusal(approvals.approve(id, { scope: 'until' }))).toMatchObject({ code: 'invalid_request' })
    const past = new Date(Date.now() - 1000).toISOString()
    const late = approvals.approve(id, { scope: 'until', until: past })
    expect(await refusal(late)).toMatchObject({ code: 'invalid_request' })
    const until = new Date(Date.now() + 3_600_000).toISOString()
    expect(await approvals.approve(id, { scope: 'until', until })).toMatchObject({ expiresAt: until })
    await append(sandbox)
    await append(sandbox)
    asking.expire(id)
    await needed(append(sandbox))
    expect(await appended(sandbox)).toBe(2)
  })
})

describe('who waits', () => {
  it('goes on when it is approved', async () => {
    const waiting = append(await asking.waiting(sandbox))
    await asking.operator.approvals.approve(await asking.pending(sandbox))
    await waiting
    expect(await appended(sandbox)).toBe(1)
  })

  it('is refused when it is rejected', async () => {
    const waiting = refusal(append(await asking.waiting(sandbox)))
    await asking.operator.approvals.reject(await asking.pending(sandbox), { note: 'no' })
    expect(await waiting).toMatchObject({ code: 'policy_denied' })
  })

  it('is refused when nobody answers in time, and told to ask again when its own time is over', async () => {
    const waiting = refusal(append(await asking.waiting(sandbox)))
    asking.expire(await asking.pending(sandbox))
    expect(await waiting).toMatchObject({ code: 'policy_denied', message: expect.stringContaining('Nobody answered') })
    const brief = asking.with(server.developerKey, 1)
    await needed(append(await brief.sandboxes.get(sandbox.id)))
  })

  it('is denied when a policy denies it by the time that it is approved', async () => {
    const waiting = refusal(append(await asking.waiting(sandbox)))
    const id = await asking.pending(sandbox)
    await asking.policy(denying('append'))
    await asking.operator.approvals.approve(id)
    expect(await waiting).toMatchObject({ code: 'policy_denied', message: expect.stringContaining('asks/append') })
    expect(await appended(sandbox)).toBe(0)
  })

  it('does nothing after it has left, whatever is answered', async () => {
    const gone = new AbortController()
    const waiting = refusal(append(await asking.waiting(sandbox), { signal: gone.signal }))
    const id = await asking.pending(sandbox)
    gone.abort()
    await waiting
    await asking.operator.approvals.approve(id)
    // The approval is still there for who asks again, so nobody has used it.
    await append(sandbox)
    expect(await appended(sandbox)).toBe(1)
    expect((await asking.admin.approvals.get(id)).state).toBe('used')
  })

  it('for longer than is allowed is refused', async () => {
    const response = await fetch(`${server.url}/v1/whoami`, {
      headers: { authorization: `Bearer ${server.developerKey}`, 'airlock-wait-approval': '301' },
    })
    expect(response.status).toBe(400)
  })
})

describe('everybody is told', () => {
  it('by the feed, from what is pending on', async () => {
    const before = await needed(append(sandbox))
    const leave = new AbortController()
    const seen: string[] = []
    const reading = (async () => {
      for await (const { event, approval } of asking.operator.approvals.watch({ signal: leave.signal }))
        if (approval.sandbox === sandbox.id) seen.push(`${event} ${approval.id} ${approval.state}`)
    })()
    const has = async (line: string) =>
      waitFor(() => (seen.includes(line) ? true : undefined), { signal: deadline(100_000), everyMs: 10 })
    await has(`pending ${before} pending`)
    const after = await needed(append(sandbox, {}, 'more'))
    await has(`pending ${after} pending`)
    await asking.operator.approvals.reject(before)
    await has(`answered ${before} rejected`)
    await asking.operator.approvals.approve(after)
    await has(`answered ${after} approved`)
    leave.abort()
    await expect(reading).rejects.toThrow()
    expect(seen).toHaveLength(4)
  })

  it('by the command line, where it can be answered', async () => {
    const id = await needed(append(sandbox))
    const run = async (...argv: readonly string[]) => new CliProcess(argv, { env: environment() }).ended
    const listed = await run('approvals', 'ls', '--json')
    expect((JSON.parse(listed.stdout) as { id: string }[]).map((one) => one.id)).toContain(id)
    expect((await run('approvals', 'show', id)).stdout).toContain('"tee" "-a" "/workspace/log"')
    expect(await run('approvals', 'approve', id)).toMatchObject({ code: 0, stdout: `${id} approved\n` })
    expect(await run('approvals', 'approve', id)).toMatchObject({ code: 6 })
    expect(await run('approvals', 'revoke', id)).toMatchObject({ code: 0, stdout: `${id} revoked\n` })
  })

  it('by the command line, which waits for the answer when it is told to', async () => {
    const argv = [sandbox.id, '--', 'tee', '/workspace/waited']
    const env = environment()
    const start = (...more: readonly string[]) => {
      const started = new CliProcess(['exec', ...more, ...argv], { env })
      started.child.stdin.end()
      return started.ended
    }
    const refused = await start()
    const id = await asking.pending(sandbox)
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining(`airlock approvals approve ${id}`) })
    const waiting = start('--wait-approval', '1m')
    const asks = async () => {
      const { items } = await asking.admin.audit.events({ point: 'approval.ask', agent })
      return items.length === 2 ? true : undefined
    }
    await waitFor(asks, { signal: deadline(100_000), everyMs: 50 })
    await asking.operator.approvals.approve(id)
    expect(await waiting).toMatchObject({ code: 0 })
  })

  it('by the command line, once for the same run in a new sandbox, with the same files', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'al-approved-'))
    const run = async (...argv: readonly string[]) => {
      const started = new CliProcess(['run', '--agent', agent, ...argv], { env: environment(), cwd: dir })
      started.child.stdin.end()
      return started.ended
    }
    const approve = async ({ code, stderr }: { readonly code: number | null; readonly stderr: string }) => {
      expect(code).toBe(4)
      const id = /airlock approvals approve (apr_\w+)\. Then run exactly the same again/.exec(stderr)?.[1] ?? ''
      await asking.operator.approvals.approve(id)
    }
    const program = ['--with', 'input.txt', '--', 'tee', 'out.txt']
    try {
      await writeFile(join(dir, 'input.txt'), 'one')
      await approve(await run(...program))
      await writeFile(join(dir, 'input.txt'), 'two')
      expect(await run(...program)).toMatchObject({ code: 4 })
      await writeFile(join(dir, 'input.txt'), 'one')
      expect(await run('--env', 'A=1', ...program)).toMatchObject({ code: 4 })
      expect(await run(...program)).toMatchObject({ code: 0 })
      expect(await run(...program)).toMatchObject({ code: 4 })

      await writeFile(join(dir, 'script.py'), 'ask_me = 1; print("asked")')
      await approve(await run('script.py', 'x'))
      expect(await run('script.py', 'y')).toMatchObject({ code: 4 })
      expect(await run('script.py', 'x')).toMatchObject({ code: 0, stdout: 'asked\n' })
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  })

  it('and says that piped input was not part of it, instead of waiting for more', async () => {
    const run = async (input: string) => {
      const started = new CliProcess(['exec', sandbox.id, '--', 'tee', '/workspace/piped'], { env: environment() })
      started.child.stdin.end(input)
      return started.ended
    }
    expect(await run('safe')).toMatchObject({ code: 4 })
    await asking.operator.approvals.approve(await asking.pending(sandbox))
    const second = await run('evil')
    expect(second.stderr).toContain('A person approved this command without input, so it gets none.')
    expect(await sandbox.files.readText('piped')).toBe('')
  })

  it('not at all where a run empties its own workspace, which ends with it', async () => {
    const run = async (verb: string, ...argv: readonly string[]) => {
      const started = new CliProcess([verb, ...argv], { env: environment() })
      started.child.stdin.end()
      return started.ended
    }
    expect(await run('run', '--agent', agent, '--shell', 'rm -rf /workspace/*')).toMatchObject({ code: 0 })
    expect(await run('exec', '--shell', sandbox.id, 'rm -rf /workspace/*')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('It removes the whole workspace.'),
    })
  })

  it('by lines of approvals watch where there is no terminal', async () => {
    const id = await needed(append(sandbox))
    const watch = new CliProcess(['approvals', 'watch'], { env: environment() })
    const has = async (line: string) =>
      waitFor(() => (watch.stdout.toString().includes(line) ? true : undefined), {
        signal: deadline(100_000),
        everyMs: 20,
      })
    await has(`${id} pending (high) command.run: tee -a /workspace/log`)
    await asking.operator.approvals.reject(id)
    const { actor } = await asking.operator.whoami()
    await has(`${id} rejected by ${actor} (high)`)
    watch.child.kill('SIGINT')
    expect(await watch.ended).toMatchObject({ code: 0, stderr: '' })
  })

  it('at a terminal, where a key answers', requires('python3'), async () => {
    const first = await needed(append(sandbox))
    const second = await needed(append(sandbox, {}, 'second'))
    const terminal = ['python3', '-c', 'import pty, sys; pty.spawn(sys.argv[1:])', process.execPath, CLI]
    const watch = new CliProcess(['approvals', 'watch', '--agent', agent], { env: environment(), command: terminal })
    const has = async (line: string) =>
      waitFor(() => (watch.stdout.toString().includes(line) ? true : undefined), {
        signal: deadline(100_000),
        everyMs: 20,
      })
    await has('"tee" "-a" "/workspace/log"')
    await has('a approves it once')
    watch.child.stdin.write('a')
    await has(`${first} approved`)
    await has('"tee" "-a" "/workspace/second"')
    watch.child.stdin.write('r')
    await has(`${second} rejected`)
    watch.child.stdin.write('q')
    expect((await watch.ended).code).toBe(0)
    await append(sandbox)
    expect(await refusal(append(sandbox, {}, 'second'))).toMatchObject({ code: 'policy_denied' })
  })

  it('by a tool of an agent: it names the ask and the command', async () => {
    const client = await connectHttp(server, REVISIONS[0].mode)
    const argv = ['tee', '-a', '/workspace/log']
    const result = await client.callTool({ name: 'run_command', arguments: { sandbox: sandbox.id, argv } })
    await client.close()
    const id = await asking.pending(sandbox)
    expect(errorOf(result)).toMatchObject({ code: 'approval_required', approval: id })
    expect(JSON.stringify(result.content)).toContain(`airlock approvals approve ${id}`)
  })
})

describe('the evidence', () => {
  it('has the ask, the answer, the use and the effect, each with the same hash', async () => {
    const id = await needed(append(sandbox))
    await asking.operator.approvals.approve(id)
    await append(sandbox)
    const other = await needed(append(sandbox))
    await asking.operator.approvals.reject(other)
    const { hash } = await asking.admin.approvals.get(id)
    const { items } = await asking.admin.audit.events({ sandbox: sandbox.id, limit: 200 })
    const about = (ask: string) =>
      items.flatMap(({ point, status, payload }) =>
        payload['approval'] === ask ? [{ point, status, hash: payload['hash'] }] : [],
      )
    expect(about(id).toReversed()).toEqual([
      { point: 'approval.ask', status: 'done', hash },
      { point: 'approval.approve', status: 'requested', hash },
      { point: 'approval.approve', status: 'done', hash },
      { point: 'approval.use', status: 'requested', hash },
      { point: 'approval.use', status: 'done', hash },
    ])
    expect(about(other).map(({ point }) => point)).toEqual(['approval.reject', 'approval.ask'])
    const effect = items.find(
      (one) => one.point === 'command.run' && one.decision?.rules.some(({ rule }) => rule === id),
    )
    expect(effect?.decision).toMatchObject({ effect: 'allow', risk: 'high' })
  })
})

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], AIRLOCK_URL: server.url, AIRLOCK_HOME: server.home, NO_COLOR: '1' }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
