import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { Airlock, type PolicyDocumentInput } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestPostgres } from '../support/postgres.ts'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: BorrowedServer
let developer: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await borrowServer()
  developer = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
}, 240_000)
afterAll(async () => server?.giveBack())

type Rule = PolicyDocumentInput['rules'][number]

const HOW = { effect: 'deny', risk: 'high' } as const
const ALLOW = { effect: 'allow', risk: 'low' } as const

/** Denies a program by its name. */
function lineRule(id: string, program: string): Rule {
  const match = { programs: [program] }
  const examples = { match: [program], notMatch: ['ls'] }
  return { kind: 'command', id, ...HOW, reason: `No ${program} here.`, match, examples }
}

/** Of somebody of the host who is not root. */
function ownedDirectory(): string {
  const directory = mkdtempSync('/var/tmp/airlock-guardian-')
  chownSync(directory, 42_420, 42_421)
  return directory
}

const RUNAWAY: Rule = {
  kind: 'command',
  id: 'x',
  ...HOW,
  reason: 'Bad.',
  match: { pattern: '(a+)+$' },
  examples: { match: ['aaa'] },
}
const UNTRUE: Rule = { ...lineRule('x', 'sl'), examples: { match: ['ls'] } }

describe('what is shipped', () => {
  it.each(['rm -fr /', 'cd /; rm -r -f -- /', 'env -i sh -c "rm -rf /"'])(
    'denies %s before it runs, says why, and puts that on record',
    async (shell) => {
      const sandbox = await developer.sandboxes.create()
      const denied = await sandbox.run({ shell }).catch((error: unknown) => error)
      expect(denied).toMatchObject({
        code: 'policy_denied',
        status: 403,
        message: expect.stringMatching(/^The rule builtin\/[a-z-]+ denies it: [A-Z].{20}/),
      })
      expect((await sandbox.commands()).items).toEqual([])
      const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'command.run' })
      expect(items).toMatchObject([
        {
          status: 'denied',
          role: 'developer',
          decision: { effect: 'deny', policyVersion: expect.stringMatching(/^builtin@\d+$/) },
          payload: { argv: ['/bin/sh', '-c', shell] },
        },
      ])
      await sandbox.terminate()
    },
  )

  it('has each denial on record, however often the key was refused something else before', async () => {
    const { secret } = await admin.keys.create({ name: 'refused-often', role: 'developer' })
    const own = new Airlock({ url: server.url, apiKey: secret })
    await using sandbox = await own.sandboxes.create()
    const denied = async (from: number, to: number) => {
      const lines = Array.from({ length: to - from }, (_, at) => `rm -fr / # ${from + at}`)
      for (const shell of lines) await expect(sandbox.run({ shell })).rejects.toMatchObject({ code: 'policy_denied' })
      return lines
    }
    const before = await denied(0, 5)
    for (let at = 0; at < 105; at++) await expect(own.keys.list()).rejects.toMatchObject({ code: 'forbidden' })
    const after = await denied(5, 10)
    const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'command.run' })
    expect(items.toReversed().map(({ payload }) => payload['argv'])).toEqual(
      [...before, ...after].map((line) => ['/bin/sh', '-c', line]),
    )
  })

  it('asks about variables that bring code along, wherever they are set, and takes harmless ones', async () => {
    const env = { LD_PRELOAD: '/workspace/x.so' }
    const asked = { code: 'approval_required', status: 428 }
    await expect(developer.sandboxes.create({ env })).rejects.toMatchObject(asked)
    await using sandbox = await developer.sandboxes.create({ env: { EDITOR: 'ed' } })
    await expect(sandbox.run(['ls'], { env })).rejects.toMatchObject(asked)
    await expect(developer.sessions.create({ sandbox, runtime: 'bash', env })).rejects.toMatchObject(asked)
    await using session = await developer.sessions.create({ sandbox, runtime: 'bash', env: { A: 'b' } })
    await expect(session.run('ls', { env })).rejects.toMatchObject(asked)
    expect((await session.run('echo $EDITOR $A')).stdout).toBe('ed b\n')
  })

  it('denies the same as code of a session', async () => {
    const session = await developer.sessions.create({ runtime: 'bash' })
    await expect(session.run('rm -rf / --no-preserve-root')).rejects.toMatchObject({ code: 'policy_denied' })
    expect((await session.steps()).items).toEqual([])
    const ran = await session.run('echo fine')
    expect(ran).toMatchObject({
      status: 'completed',
      provenance: { policyVersion: expect.stringMatching(/^builtin@\d+$/) },
    })
    await session.terminate()
  })
})

describe('conditions', () => {
  it('bound how long a command and a step run, on record too', async () => {
    const bound = { ...ALLOW, id: 'short', reason: 'Short.', conditions: { maxTimeoutMs: 300 } }
    const points = { points: ['command.run', 'step.run'] }
    await admin.policies.put({ name: 'short', rules: [{ kind: 'operation', match: points, ...bound }] })
    const sandbox = await developer.sandboxes.create()
    const session = await developer.sessions.create({ sandbox: sandbox.id, runtime: 'bash' })
    expect(await sandbox.run(['sleep', '60'])).toMatchObject({ timedOut: true })
    expect(await session.run('sleep 60')).toMatchObject({ status: 'failed', error: { name: 'Timeout' } })
    await admin.policies.remove('short')
    const { items } = await admin.audit.events({ sandbox: sandbox.id, status: 'requested' })
    expect(items.filter(({ point }) => /run/.test(point)).map(({ payload }) => payload['timeoutMs'])).toEqual([
      300, 300,
    ])
    const ends = async () =>
      (await admin.audit.events({ sandbox: sandbox.id, point: 'command.run', status: 'done' })).items
    await expect
      .poll(ends)
      .toMatchObject([{ decision: { conditions: { maxTimeoutMs: 300 }, rules: [{ rule: 'short' }] } }])
    await sandbox.terminate()
  })

  it('of a sandbox hold in it as long as it lives, whatever the policies say later', async () => {
    const bound = { ...ALLOW, id: 'short', reason: 'Short.', conditions: { maxTimeoutMs: 400 } }
    await admin.policies.put({ name: 'short', rules: [{ kind: 'tier', match: { templates: ['base'] }, ...bound }] })
    const sandbox = await developer.sandboxes.create()
    await admin.policies.remove('short')
    const session = await developer.sessions.create({ sandbox: sandbox.id, runtime: 'bash' })
    expect(await sandbox.run(['sleep', '60'])).toMatchObject({ timedOut: true })
    expect(await session.run('sleep 60')).toMatchObject({ status: 'failed', error: { name: 'Timeout' } })
    await sandbox.terminate()
  })

  it('make what is granted read-only, in grants and in sandboxes', requires('root', 'python3'), async () => {
    await admin.agents.register('reader', { approve: true })
    const [first, second] = [ownedDirectory(), ownedDirectory()]
    try {
      expect(await admin.grants.add('reader', first, { mode: 'rw' })).toMatchObject({ mode: 'rw' })
      const tied = { ...ALLOW, id: 'tied', reason: 'Tied.', conditions: { readOnly: true } as const }
      await admin.policies.put({ name: 'tied', rules: [{ kind: 'mount', match: { modes: ['rw'] }, ...tied }] })
      expect(await admin.grants.add('reader', second, { mode: 'rw' })).toMatchObject({ mode: 'ro' })
      const sandbox = await admin.sandboxes.create({ agent: 'reader' })
      const { mounts } = sandbox.data
      expect(mounts.map(({ path, mode }) => [path, mode])).toEqual([
        [first, 'ro'],
        [second, 'ro'],
      ])
      const tried = await sandbox.run(['touch', `${mounts[0]?.target}/x`])
      expect(tried).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('Read-only file system') })
      expect(readdirSync(first)).toEqual([])
      await sandbox.terminate()
    } finally {
      await admin.policies.remove('tied')
      for (const directory of [first, second]) rmSync(directory, { recursive: true })
    }
  })

  it('raise the tier, or the sandbox is refused where there is none', async () => {
    const strict = { ...ALLOW, id: 'strict', reason: 'Strict.', conditions: { tier: 'strict' } as const }
    await admin.policies.put({ name: 'strict', rules: [{ kind: 'tier', match: { templates: ['*'] }, ...strict }] })
    const made = await admin.sandboxes.create().catch((error: unknown) => error)
    await admin.policies.remove('strict')
    const { items } = await admin.audit.events({ point: 'sandbox.create', status: 'requested', limit: 1 })
    expect(items).toMatchObject([{ decision: { conditions: { tier: 'strict' } }, payload: { tier: 'strict' } }])
    if (made instanceof Error) expect(made).toMatchObject({ code: 'isolation_unavailable' })
    else expect(made).toMatchObject({ data: { isolation: { tier: 'strict' } } })
  })
})

describe('a policy', () => {
  it('has versions that rise and are kept, and a writer who was too slow is told', async () => {
    const first: PolicyDocumentInput = { name: 'kept', rules: [lineRule('no-sl', 'sl')] }
    expect(await admin.policies.put(first, { expectedVersion: 0 })).toMatchObject({ version: 1, inForce: true })
    await expect(admin.policies.put({ ...first, rules: [] }, { expectedVersion: 0 })).rejects.toMatchObject({
      code: 'stale_version',
    })
    expect(await admin.policies.put({ ...first, rules: [] }, { expectedVersion: 1 })).toMatchObject({ version: 2 })
    await admin.policies.remove('kept', { expectedVersion: 2 })
    expect(await admin.policies.get('kept')).toMatchObject({ version: 3, inForce: false, document: null })
    expect(await admin.policies.get('kept', { version: 1 })).toMatchObject({ document: { rules: [{ id: 'no-sl' }] } })
    const { items } = await admin.policies.versions('kept')
    expect(items.map(({ version, inForce }) => [version, inForce])).toEqual([
      [3, false],
      [2, true],
      [1, true],
    ])
  })

  it.each([
    ['a pattern that runs away', RUNAWAY],
    ['an example that does not hold', UNTRUE],
  ])('is refused with %s, by check and by put', async (_what, rule) => {
    const document = { name: 'bad', rules: [rule] }
    expect(await admin.policies.check(document)).toMatchObject({
      isValid: false,
      problems: [expect.stringContaining('bad/x')],
    })
    await expect(admin.policies.put(document)).rejects.toMatchObject({ code: 'policy_invalid' })
  })

  it('of a tenant neither takes the name of one of the platform nor switches its rules off', async () => {
    const put = async (document: PolicyDocumentInput) => admin.policies.put(document)
    await expect(put({ name: 'platform-x', rules: [] })).rejects.toMatchObject({ code: 'policy_invalid' })
    await expect(put({ name: 'x', off: ['platform-x/y'], rules: [] })).rejects.toMatchObject({ code: 'policy_invalid' })
    await expect(put({ name: 'builtin', rules: [] })).rejects.toMatchObject({ code: 'policy_invalid' })
  })

  it('is written by admins, and that of the platform by the platform, for every tenant', async () => {
    await admin.tenants.create('acme')
    const { secret } = await admin.keys.create({ name: 'acme', role: 'admin', tenant: 'acme' })
    const acme = new Airlock({ url: server.url, apiKey: secret })
    const document = { name: 'platform-line', rules: [lineRule('no-sl', 'sl')] }
    await expect(developer.policies.put(document)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(acme.policies.put(document, { scope: 'platform' })).rejects.toMatchObject({ code: 'forbidden' })
    await admin.policies.put(document, { scope: 'platform' })
    const bounds = { cwd: '/workspace', env: [], timeoutMs: 1 }
    const asked = { point: 'command.run', operation: { kind: 'command', argv: ['sl'], ...bounds } } as const
    expect(await acme.guardian.evaluate({ ...asked, operation: { ...asked.operation, argv: ['sl'] } })).toMatchObject({
      decision: { effect: 'deny', rules: [{ policy: 'platform-line', rule: 'no-sl' }] },
    })
    expect(await acme.guardian.status()).toMatchObject({
      default: 'allow',
      policies: [
        { name: 'builtin', scope: 'shipped' },
        { name: 'platform-line', scope: 'platform', rules: 1 },
      ],
    })
    await admin.policies.remove('platform-line', { scope: 'platform' })
  })

  it('shows in a backtest what it would change, and changes nothing', async () => {
    const sandbox = await developer.sandboxes.create()
    await sandbox.run(['uname', '-a'])
    await sandbox.run(['true'])
    const found = await admin.policies.backtest({ name: 'draft', rules: [lineRule('no-uname', 'uname')] })
    expect(found.changes).toEqual([{ from: 'allow', to: 'deny', count: 1 }])
    expect(found.examples).toMatchObject([
      {
        sandbox: sandbox.id,
        point: 'command.run',
        operation: { kind: 'command', argv: ['uname', '-a'] },
        before: { effect: 'allow' },
        after: { effect: 'deny', rules: [{ policy: 'draft', rule: 'no-uname' }] },
      },
    ])
    expect(await sandbox.run(['uname'])).toMatchObject({ exitCode: 0 })
    await sandbox.terminate()
  })
})

describe('servers that share a store', requires('root', 'postgres'), () => {
  let postgres: TestPostgres
  let servers: readonly TestServer[] = []
  beforeAll(async () => {
    postgres = await TestPostgres.start()
    const env = { DATABASE_URL: await postgres.createDatabase() }
    servers = [await startServer({ env }), await startServer({ env })]
  }, 300_000)
  afterAll(async () => {
    for (const one of servers) await one.stop()
    await postgres?.stop()
  }, 120_000)

  it('know within seconds what another one wrote', async () => {
    const apiKey = servers[0]?.adminKey ?? ''
    const [here, there] = servers.map(({ url }) => new Airlock({ url, apiKey }))
    const sandbox = await there?.sandboxes.create()
    const run = async () => sandbox?.run(['true'])
    expect(await run()).toMatchObject({ exitCode: 0 })
    await here?.policies.put({ name: 'shared', rules: [lineRule('no-true', 'true')] })
    const denied = async () =>
      run().then(
        () => undefined,
        (error: unknown) => error,
      )
    expect(await waitFor(denied, { signal: deadline(100_000), everyMs: 100 })).toMatchObject({
      code: 'policy_denied',
      message: 'The rule shared/no-true denies it: No true here.',
    })
  })
})
