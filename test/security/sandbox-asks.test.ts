import { createHash } from 'node:crypto'
import { Airlock, type Approval, type RunningCommand, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { documentedCode } from '../support/documented.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'

/** What docs/doors.md shows, and what it asks for. */
const DOCUMENTED = documentedCode('doors.md', 'python', '/v1/self/ask')
const DETAIL = '{"to":"staging"}'

let server: BorrowedServer
let admin: Airlock
let box: Sandbox

beforeAll(async () => {
  server = await borrowServer()
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  await admin.agents.register('asker', { approve: true })
}, 240_000)
afterAll(async () => server?.giveBack())
beforeEach(async () => {
  box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({ agent: 'asker' })
})
afterEach(async () => box?.terminate())

describe('a program inside that asks', requires('root', 'python3'), () => {
  it('waits, and goes on when a person approves it on the command line', async () => {
    const program = await box.start(['python3', '-c', `${DOCUMENTED}open('/workspace/deployed', 'w')\n`])
    const { id } = await pending()
    expect((await cli('approvals', 'ls')).stdout).toContain(`sandbox ${box.id} asks: deploy ${DETAIL}`)
    expect(await cli('approvals', 'approve', id)).toMatchObject({ code: 0, stdout: `${id} approved\n` })
    const rule = { policy: 'approval', rule: id, effect: 'allow' }
    expect(JSON.parse(await outputOf(program))).toMatchObject({ allowed: true, rules: [rule] })
    expect((await box.files.stat('/workspace/deployed')).kind).toBe('file')
    const sha256 = createHash('sha256').update(DETAIL).digest('hex')
    const payload = { requestId: expect.stringMatching(/^req_/) as string, action: 'deploy', detail: { sha256 } }
    const actor = `sandbox:${box.id}`
    await expect.poll(records).toMatchObject([
      { status: 'requested', actor, agent: 'asker', role: 'sandbox', payload, decision: { rules: [rule] } },
      { status: 'done', actor, payload },
    ])
  })

  it('is denied when a person rejects it, and by the same ask again', async () => {
    const program = await box.start(['python3', '-c', DOCUMENTED])
    const { id } = await pending()
    expect(await cli('approvals', 'reject', id, '--note', 'not today')).toMatchObject({ code: 0 })
    const refusal = { error: { code: 'policy_denied', approval: id, message: expect.stringContaining('not today') } }
    expect(JSON.parse(await outputOf(program))).toMatchObject(refusal)
    expect(await ask({ action: 'deploy', detail: { to: 'staging' } })).toMatchObject([403, refusal])
    await expect.poll(records).toMatchObject([
      { status: 'denied', error: { code: 'policy_denied' }, payload: { action: 'deploy' } },
      { status: 'denied', error: { code: 'policy_denied' }, payload: { action: 'deploy' } },
    ])
  })

  it('is told what it needs when nobody answers in time; one approval lets one ask pass', async () => {
    const body = { action: 'release', waitSeconds: 1 }
    const { id, error } = approvalOf(await ask(body))
    expect(error).toMatchObject({ code: 'approval_required', hint: expect.stringContaining(`approve ${id}`) })
    expect(approvalOf(await ask({ ...body, waitSeconds: 0 })).id).toBe(id)
    await admin.approvals.approve(id)
    expect(await ask(body)).toMatchObject([200, { allowed: true }])
    expect(approvalOf(await ask({ ...body, waitSeconds: 0 })).id).not.toBe(id)
  })

  it('is answered by the rules that name the action', async () => {
    const rule = { kind: 'operation', risk: 'low', reason: 'Tested.' } as const
    await admin.policies.put({
      name: 'asks',
      rules: [
        { ...rule, id: 'reads', effect: 'allow', match: { actions: ['read.*'] } },
        { ...rule, id: 'drops', effect: 'deny', match: { actions: ['drop'] } },
      ],
    })
    try {
      const matched = { policy: 'asks', rule: 'reads', effect: 'allow', risk: 'low', reason: 'Tested.' }
      expect(await ask({ action: 'read.logs' })).toEqual([200, { allowed: true, rules: [matched] }])
      const denied = { code: 'policy_denied', message: 'The rule asks/drops denies it: Tested.' }
      expect(await ask({ action: 'drop', waitSeconds: 300 })).toMatchObject([403, { error: denied }])
    } finally {
      await admin.policies.remove('asks')
    }
  })

  it('is refused while it waits when its token is revoked', async () => {
    const program = await box.start(['python3', '-c', DOCUMENTED])
    const { id } = await pending()
    await box.connect({ revoke: true })
    expect(JSON.parse(await outputOf(program))).toMatchObject({ error: { code: 'token_refused' } })
    expect(await admin.approvals.get(id)).toMatchObject({ state: 'pending' })
  })

  it('asks nothing any more when its sandbox is killed while it waits', async () => {
    await box.start(['python3', '-c', DOCUMENTED])
    const { id } = await pending()
    await admin.killswitch.on({ scope: 'sandbox', target: box.id })
    await expect.poll(async () => (await admin.approvals.get(id)).state).toBe('expired')
    expect(await cli('approvals', 'approve', id)).toMatchObject({ code: 6 })
    const query = { sandbox: box.id, point: 'approval.expire', limit: 10 } as const
    await expect.poll(async () => (await admin.audit.events(query)).items).toHaveLength(1)
  })

  it.each(['SIGSTOP', 'SIGKILL'] as const)(
    'is allowed nothing when the control plane gets %s, is told so, and joins its ask when it is back',
    async (signal) => {
      const program = await box.start(['python3', '-c', PERSISTENT])
      const { id } = await pending()
      const before = pidOf(server.home, 'control-plane') ?? 0
      expect(before).toBeGreaterThan(1)
      const wasSilent = silences()
      process.kill(before, signal)
      try {
        // Not before the doors have given it up: until then the program waits.
        if (signal === 'SIGSTOP') await waitFor(() => silences() > wasSilent || undefined, soon())
      } finally {
        if (signal === 'SIGSTOP') process.kill(before, 'SIGCONT')
      }
      const output = await waitFor(async () => outputOf(program).catch(() => undefined), soon())
      const [first, ...others] = output.trim().split('\n')
      expect(first).toBe('503 not_ready None')
      expect(others.at(-1)).toBe(`428 approval_required ${id}`)
      expect(new Set(others.slice(0, -1))).toEqual(new Set(others.length > 1 ? ['503 not_ready None'] : []))
    },
  )
})

const soon = () => ({ signal: deadline(100_000), everyMs: 100 })

/** How often the doors gave up a control plane that stood still. */
const silences = () => server.logs().split('it does not answer').length

async function cli(...argv: readonly string[]) {
  const { PATH } = process.env
  return new CliProcess(argv, { env: { PATH, AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.adminKey } }).ended
}

/** What the sandbox asks a person about, once it does. */
async function pending(): Promise<Approval> {
  const find = async () => (await admin.approvals.list()).items.find(({ sandbox }) => sandbox === box.id)
  return waitFor(find, soon())
}

async function outputOf(program: RunningCommand): Promise<string> {
  const { stdout, stderr } = await program.wait()
  if (stderr !== '') throw new TypeError(stderr)
  return stdout
}

async function ask(body: object): Promise<readonly [number, unknown]> {
  const { stdout, stderr } = await box.run(['python3', '-c', `${ASK}print(*ask(sys.argv[1]))`, JSON.stringify(body)])
  if (stderr !== '') throw new TypeError(stderr)
  return [Number(stdout.slice(0, 3)), JSON.parse(stdout.slice(4))]
}

function approvalOf(answer: readonly [number, unknown]) {
  expect(answer).toMatchObject([428, { error: { approval: expect.stringMatching(/^apr_/) as string } }])
  const { error } = answer[1] as { error: { approval: string } }
  return { id: error.approval, error }
}

async function records() {
  const { items } = await admin.audit.events({ sandbox: box.id, point: 'sandbox.ask', limit: 100 })
  return items.toReversed()
}

const ASK = `
import http.client, json, os, socket, sys, time
def ask(body):
    door = http.client.HTTPConnection('airlock')
    door.sock = socket.socket(socket.AF_UNIX)
    door.sock.connect(os.environ['AIRLOCK_SOCKET'])
    token = open(os.environ['AIRLOCK_TOKEN_FILE']).read().strip()
    door.request('POST', '/v1/self/ask', body, {'Authorization': 'Bearer ' + token})
    answer = door.getresponse()
    return answer.status, answer.read().decode()
`

/** Waits, and when that fails asks again without waiting, until something else than "not ready" is said. */
const PERSISTENT = `${ASK}
wait = 300
while True:
    status, body = ask(json.dumps({'action': 'deploy', 'waitSeconds': wait}))
    error = json.loads(body)['error']
    print(status, error['code'], error.get('approval'), flush=True)
    if status != 503:
        break
    wait = 0
    time.sleep(0.5)
`
