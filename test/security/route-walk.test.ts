import { ROUTES, type Role, ROLES, type Route, type RouteName } from '@airlock/contract'
import { Airlock, type AirlockError, type CreateKeyOptions } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { connectHttp, errorOf as toolError } from '../mcp/client.ts'
import { type Asked, TOOL_WALK, WALK, WALKED_TOOL, type Steps, type Things } from './route-walk.ts'

/**
 * Every route of the table, asked by everybody who must not be answered: without a key, with one that is over, with a lesser
 * role, from another tenant, and bound to another agent. A route without a row in `WALK` does not compile, and fails here.
 */
const NAMES = Object.keys(ROUTES) as readonly RouteName[]
const table: Readonly<Record<RouteName, Route>> = ROUTES
const steps: Readonly<Record<RouteName, Steps>> = WALK
const guarded = NAMES.filter((name) => table[name].roles !== 'public')

let server: TestServer
let things: Things
/** Keys of the tenant whose things are walked on, by role. */
let own: Readonly<Record<Role, string>>
/** Keys of the same tenant, bound to an agent that has nothing to do with them. */
let bound: Readonly<Record<Exclude<Role, 'admin'>, string>>
/** A key of the agent whose things they are. */
let agentsOwn: string
/** Admins of another tenant; the second is of the platform too. */
let foreign: string
let platform: string
let over: Readonly<Record<'expired' | 'revoked' | 'rotated out', string>>
let before: unknown

beforeAll(async () => {
  server = await startServer({ env: { AIRLOCK_WEBHOOK_PRIVATE: 'true' } })
  platform = server.adminKey
  const root = client(platform)
  for (const id of ['acme', 'globex']) await root.tenants.create(id)
  const make = async (options: Omit<CreateKeyOptions, 'name'>) => {
    const { key, secret } = await root.keys.create({ name: 'walk', tenant: 'acme', ...options })
    return { id: key.id, secret }
  }
  const secretOf = async (options: Omit<CreateKeyOptions, 'name'>) => (await make(options)).secret
  own = {
    admin: await secretOf({ role: 'admin' }),
    operator: await secretOf({ role: 'operator' }),
    developer: await secretOf({ role: 'developer' }),
    auditor: await secretOf({ role: 'auditor' }),
  }
  const agents = ['other']
  bound = {
    operator: await secretOf({ role: 'operator', agents }),
    developer: await secretOf({ role: 'developer', agents }),
    auditor: await secretOf({ role: 'auditor', agents }),
  }
  agentsOwn = await secretOf({ role: 'developer', agents: ['walked-agent'] })
  foreign = await secretOf({ role: 'admin', tenant: 'globex' })
  over = await endedKeys(make)
  things = await makeThings()
  before = await everything()
}, 240_000)

afterAll(async () => server?.stop())

describe('the table of the walk', () => {
  it('has exactly the routes of the table of routes', () => {
    expect(Object.keys(WALK).toSorted()).toEqual(NAMES.toSorted())
  })

  it('asks without an agent where one may be named', async () => {
    const optional = await routesThatMayNameAgent()
    const walked = NAMES.filter((name) => steps[name].unnamed !== undefined)
    expect(walked).toEqual(NAMES.filter((name) => optional.includes(name) && steps[name].bound !== 'forbidden'))
    expect(walked).toContain('createSandbox')
  })
})

describe('without a key that is good', () => {
  it.each(guarded)('%s answers the same to everybody', async (name) => {
    const keys = [undefined, 'al_', over.expired, over.revoked, over['rotated out'], 'eyJhbGciOiJub25lIn0.e30.']
    const answers = await Promise.all(keys.map((key) => ask(name, key)))
    for (const answer of answers) expect(answer).toEqual({ ...answers[0], status: 401, code: 'unauthenticated' })
  })

  it.each(NAMES.filter((name) => table[name].roles === 'public'))('%s says nothing about anybody', async (name) => {
    const { text, status } = await send(name, undefined)
    expect([status, leaks(text)]).toEqual([steps[name].answers ?? 200, []])
  })
})

describe('with a lesser role', () => {
  it.each(guarded.flatMap((name) => refusedRoles(name).map((role) => [name, role] as const)))(
    '%s is forbidden for %s',
    async (name, role) => {
      expect(await ask(name, own[role])).toMatchObject({ status: 403, code: 'forbidden' })
    },
  )

  it.each(guarded.filter((name) => table[name].scope === 'platform'))('%s is forbidden for a tenant', async (name) => {
    expect(await ask(name, own.admin)).toMatchObject({ status: 403, code: 'forbidden' })
  })
})

describe('from another tenant', () => {
  it.each(guarded.filter((name) => table[name].scope === undefined))('%s is not found', async (name) => {
    await expectHidden(name, foreign)
  })

  it.each(guarded.filter((name) => steps[name].platform !== 'may'))('%s is not found by the platform', async (name) => {
    if (table[name].scope === undefined) await expectHidden(name, platform)
  })
})

describe('bound to another agent', () => {
  it.each(guarded.filter((name) => table[name].scope === undefined))('%s is not found', async (name) => {
    const roles = (['operator', 'developer', 'auditor'] as const).filter((role) => rolesOf(name).includes(role))
    for (const role of roles) {
      if (steps[name].bound === 'forbidden') expect(await ask(name, bound[role])).toMatchObject({ status: 403 })
      else if (steps[name].bound !== 'may') await expectHidden(name, bound[role])
    }
    // A key that is bound is never an admin: for admins alone there is nobody to ask.
    if (roles.length === 0) expect(await ask(name, bound.operator)).toMatchObject({ status: 403, code: 'forbidden' })
  })
})

describe('/mcp, the one path beside the table', () => {
  it.each(['GET', 'POST', 'DELETE'])('answers the same to everybody without a key that is good: %s', async (method) => {
    for (const key of [undefined, 'al_', over.expired, over.revoked, over['rotated out'], 'eyJhbGciOiJub25lIn0.e30.']) {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
      const response = await fetch(`${server.url}/mcp`, { method, headers })
      expect([response.status, errorOf(await response.text()).code]).toEqual([401, 'unauthenticated'])
    }
  })

  it('has exactly the tools of the walk', async () => {
    const mcp = await connectHttp(server, 'legacy', own.developer)
    expect((await mcp.listTools()).tools.map(({ name }) => name).toSorted()).toEqual(Object.keys(TOOL_WALK).toSorted())
    await mcp.close()
  })

  it.each(['another tenant', 'the platform', 'an agent that has nothing to do with it'])(
    'hides all things from %s, whatever the tool',
    async (whose) => {
      const keys = { 'another tenant': foreign, 'the platform': platform }
      const mcp = await connectHttp(
        server,
        'legacy',
        Object.entries(keys).find(([name]) => name === whose)?.[1] ?? bound.developer,
      )
      for (const [name, tool] of Object.entries(TOOL_WALK)) {
        const result = await mcp.callTool({ name, arguments: tool.ask(things) })
        expect(leaks(JSON.stringify(result)), name).toEqual([])
        if (tool.lists) expect(result.isError, name).not.toBe(true)
        else expect(toolError(result), name).toMatchObject({ code: expect.stringMatching(/_not_found$/) })
      }
      await mcp.close()
    },
  )

  it('lets a role that may not use sandboxes do nothing with them', async () => {
    const mcp = await connectHttp(server, 'legacy', own.auditor)
    for (const [name, tool] of Object.entries(TOOL_WALK)) {
      if (tool.lists || tool.reads) continue
      expect(toolError(await mcp.callTool({ name, arguments: tool.ask(things) })), name).toMatchObject({
        code: 'forbidden',
      })
    }
    await mcp.close()
  })
})

describe('after all of it', () => {
  it('nothing of the tenant has changed', async () => {
    expect(await everything()).toEqual(before)
  })

  it.each(NAMES.filter((name) => steps[name].unnamed !== undefined))(
    '%s means the one agent that the key is bound to when none is named',
    async (name) => {
      const { text, status } = await request(name, agentsOwn, steps[name].unnamed)
      const agents = [...text.matchAll(/"agent":"([^"]*)"/g)].map(([, agent]) => agent)
      expect([status, agents.filter((agent) => agent !== things.agent)]).toEqual([steps[name].answers ?? 200, []])
      if (table[name].body) expect(agents).not.toEqual([])
    },
  )

  it('every refusal for a role is in the evidence of its tenant', async () => {
    const refusals = guarded.flatMap((name) => refusedRoles(name)).length
    const { audit } = client(own.admin)
    const { items } = await audit.events({ point: 'auth.refuse', limit: 1000 })
    expect(items.length).toBeGreaterThanOrEqual(refusals)
  })

  it.each(guarded.toSorted((a, b) => lateness(a) - lateness(b)))(
    '%s finds its things for who owns them: it was the wall that hid them',
    async (name) => {
      const { owner = 'admin', hidden } = steps[name]
      if (owner === 'nobody') return
      const answer = await ask(name, owner === 'platform' ? platform : own[owner])
      expect([401, 403]).not.toContain(answer.status)
      if (hidden !== undefined) expect(answer.code).not.toBe(hidden)
    },
  )
})

interface Answer {
  readonly status: number
  readonly code: string | undefined
  readonly message: string | undefined
}

/** What is not yours answers as what is not there; what lists shows nothing of others; what makes makes nothing. */
async function expectHidden(name: RouteName, key: string): Promise<void> {
  const { hidden, answers = 200, repeats = false } = steps[name]
  const { text, ...answer } = await send(name, key)
  expect(leaks(text).filter((thing) => !repeats || /^(?:sbx|cmd|ses|stp)_/.test(thing))).toEqual([])
  if (hidden === undefined) return expect(answer.status).toBe(answers)
  expect(answer).toMatchObject({ status: 404, code: hidden })
  expect(answer).toEqual(await ask(name, key, absentThings()))
}

async function ask(name: RouteName, key: string | undefined, of = things): Promise<Answer> {
  const { status, code, message } = await send(name, key, of)
  return { status, code, message }
}

async function send(
  name: RouteName,
  key: string | undefined,
  of = things,
): Promise<Answer & { readonly text: string }> {
  return request(name, key, steps[name].ask(of))
}

async function request(
  name: RouteName,
  key: string | undefined,
  { params = {}, query = {}, body }: Asked = {},
): Promise<Answer & { readonly text: string }> {
  const { method, path, sends, body: takes } = table[name]
  const url = new URL(
    path.replaceAll(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(params[param] ?? '')),
    server.url,
  )
  for (const [field, value] of Object.entries(query)) url.searchParams.set(field, value)
  const response = await fetch(url, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(takes ? { 'content-type': 'application/json' } : {}),
    },
    ...(takes ? { body: JSON.stringify(body ?? {}) } : {}),
    ...(sends === 'bytes' ? { body: 'x' } : {}),
  })
  const text = await response.text()
  return { status: response.status, text, ...errorOf(text) }
}

function errorOf(text: string): Pick<Answer, 'code' | 'message'> {
  const none = { code: undefined, message: undefined }
  if (!text.startsWith('{"error"')) return none
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  return { code: error.code, message: error.message }
}

/** Which of the tenant's things an answer names. */
function leaks(text: string): readonly string[] {
  return Object.values(things).filter((thing) => text.includes(thing))
}

/** What the served description of a route says of what it takes, as far as the walk looks at it. */
interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
}
interface Operation {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

/** The routes whose caller may leave out the agent that it is about. */
async function routesThatMayNameAgent(): Promise<readonly string[]> {
  const { text } = await request('openapi', undefined)
  const { paths, components } = JSON.parse(text) as {
    paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
    components: { schemas: Readonly<Record<string, Schema>> }
  }
  const resolve = (schema: Schema): Schema => components.schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema
  const isOptional = (schema: Schema): boolean => {
    const { properties = {}, required = [], anyOf = [] } = resolve(schema)
    return (
      ('agent' in properties && !required.includes('agent')) ||
      [...Object.values(properties), ...anyOf].some(isOptional)
    )
  }
  return Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ parameters, requestBody }) => {
      const inQuery = parameters.some((one) => one.name === 'agent' && one.in === 'query' && !one.required)
      return inQuery || Object.values(requestBody?.content ?? {}).some(({ schema }) => isOptional(schema))
    })
    .map(({ operationId }) => operationId)
}

function rolesOf(name: RouteName): readonly Role[] {
  const { roles } = table[name]
  return roles === 'public' ? [] : roles
}

function refusedRoles(name: RouteName): readonly Role[] {
  return ROLES.filter((role) => !rolesOf(name).includes(role))
}

/** What ends things comes last, and agents after what is theirs. */
function lateness(name: RouteName): number {
  if (name.endsWith('Killswitch') || name.endsWith('KillswitchOn')) return 4
  if (name === 'removeAgent') return 3
  if (/^(?:revoke|suspend|remove)/.test(name)) return 2
  return name.startsWith('terminate') ? 1 : 0
}

function client(apiKey: string): Airlock {
  return new Airlock({ url: server.url, apiKey })
}

async function endedKeys(
  make: (options: Omit<CreateKeyOptions, 'name'>) => Promise<{ readonly id: string; readonly secret: string }>,
): Promise<typeof over> {
  const root = client(platform)
  const expired = await make({ role: 'admin', expiresInMs: 1000 })
  const revoked = await make({ role: 'admin' })
  await root.keys.revoke(revoked.id)
  const rotated = await make({ role: 'admin' })
  await root.keys.rotate(rotated.id, { overlapMs: 0 })
  await waitFor(
    async () =>
      client(expired.secret)
        .whoami()
        .then(() => undefined)
        .catch(() => true),
    { signal: deadline(100_000), everyMs: 50 },
  )
  return { expired: expired.secret, revoked: revoked.secret, 'rotated out': rotated.secret }
}

async function makeThings(): Promise<Things> {
  const admin = client(own.admin)
  const agent = await admin.agents.register('walked-agent', { approve: true, labels: { a: 'walked-label' } })
  const grant = await client(platform).grants.add(agent.id, '/usr/share', { tenant: 'acme' })
  const sandbox = await admin.sandboxes.create({ agent: agent.id, name: 'walked-box', ttlMs: 3_600_000 })
  await sandbox.files.write('walked-file', 'walked-content')
  const command = await sandbox.start(['sleep', '600'])
  const session = await admin.sessions.create({ sandbox: sandbox.id, runtime: 'bash' })
  const { id: step } = await session.run('echo walked-output')
  await admin.templates.put('walked-template', { packages: ['jq'] })
  const { key } = await admin.keys.create({ name: 'walked-key', role: 'developer' })
  const { webhook } = await admin.webhooks.create({ url: 'http://127.0.0.1:9/walked', events: ['kill'] })
  await admin.policies.put({ name: 'walked-policy', rules: [] })
  await admin.secrets.put('walked-secret', { value: 'walked-secret-value', origin: WALKED_TOOL.origin })
  await admin.tools.put('walked-tool', WALKED_TOOL)
  const job = await client(agentsOwn).jobs.submit(['echo', 'walked-log'])
  await job.wait()
  await admin.catalog.put('sandbox:walked', { argv: ['true'], description: 'walked-graph' })
  const run = await client(agentsOwn).runs.start('sandbox:agent', 'walked-message')
  await run.answer()
  return {
    agent: agent.id,
    grant: grant.id,
    sandbox: sandbox.id,
    name: 'walked-box',
    command: command.id,
    session: session.id,
    step,
    job: job.id,
    artifact: (await client(agentsOwn).artifacts.upload('walked-artifact', 'walked')).id,
    run: run.id,
    graph: 'sandbox:walked',
    template: 'walked-template',
    key: key.id,
    policy: 'walked-policy',
    approval: await makeApproval(sandbox.id),
    webhook: webhook.id,
    secret: 'walked-secret',
    tool: 'walked-tool',
    tenant: 'acme',
    file: 'walked-file',
  }
}

/** An ask of a developer that nobody has answered. */
async function makeApproval(sandbox: string): Promise<string> {
  const rule = { id: 'ask', kind: 'command', effect: 'ask', risk: 'low', reason: 'Walked.' } as const
  const document = { name: 'walked-asks', rules: [{ ...rule, match: { programs: ['walked-ask'] } }] }
  await client(own.admin).policies.put(document)
  const refused: unknown = await (
    await client(own.developer).sandboxes.get(sandbox)
  )
    .run(['walked-ask'])
    .catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'approval_required', approval: expect.stringMatching(/^apr_/) })
  return (refused as AirlockError).approval ?? ''
}

/** Ids of the same shape that nobody has. */
function absentThings(): Things {
  const none = '0'.repeat(26)
  return {
    agent: 'absent-agent',
    grant: `grt_${none}`,
    sandbox: `sbx_${none}`,
    name: 'absent-box',
    command: `cmd_${none}`,
    session: `ses_${none}`,
    step: `stp_${none}`,
    job: `job_${none}`,
    artifact: `art_${none}`,
    run: `run_${none}`,
    graph: 'sandbox:absent',
    template: 'absent-template',
    key: '0'.repeat(12),
    policy: 'absent-policy',
    approval: `apr_${none}`,
    webhook: `whk_${none}`,
    secret: 'absent-secret',
    tool: 'absent-tool',
    tenant: 'absent-tenant',
    file: 'absent-file',
  }
}

/** All that there is of the tenant, but for times of use: looking is a use. */
async function everything(): Promise<unknown> {
  const { sandboxes, agents, grants, keys, policies, sessions, templates } = client(own.admin)
  const sandbox = await sandboxes.get(things.sandbox)
  const session = await sessions.get(things.session)
  const all = {
    sandboxes: (await sandboxes.list({ state: 'all' })).items.map((one) => one.data),
    commands: (await sandbox.commands()).items,
    files: await sandbox.files.list('/workspace'),
    sessions: (await sessions.list({ state: 'all' })).items.map((one) => one.data),
    steps: await session.steps(),
    agents: (await agents.list()).items,
    grants: await grants.list(things.agent),
    keys: (await keys.list({ all: true })).items,
    policies: await policies.list(),
    templates: await templates.list(),
  }
  const uses = new Set(['lastActiveAt', 'expiresAt', 'lastSeenAt', 'lastUsedAt'])
  return JSON.parse(JSON.stringify(all, (field, value: unknown) => (uses.has(field) ? undefined : value)))
}
