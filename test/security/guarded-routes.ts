import type { GovernedPoint, ROUTES, RouteName } from '@airlock/contract'
import type { Airlock, RunningCommand, Sandbox, Session } from '@airlock/sdk'
import { tarOf } from '../../packages/std/src/tar/testing/tar-writer.ts'

/** Routes with an effect that Guardian is asked about. */
export type GuardedRoute = {
  [N in RouteName]: (typeof ROUTES)[N] extends { readonly effect: infer P }
    ? P extends GovernedPoint
      ? N
      : never
    : never
}[RouteName]

/** Where the requests have their effects, all in one tenant. */
export interface Place {
  readonly admin: Airlock
  readonly sandbox: Sandbox
  readonly paused: Sandbox
  readonly session: Session
  /** Writes what it is sent into `said`. */
  readonly listener: RunningCommand
  readonly sleeper: RunningCommand
  readonly key: string
  readonly artifact: string
  /** The token of a link to it. */
  readonly link: string
}

interface Asked {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly bytes?: string | Buffer
}

interface Row {
  /** A request that would succeed. */
  readonly ask: (of: Place) => Asked
  /** What the effect would change; without it the answer is the effect. */
  readonly look?: (of: Place) => Promise<unknown>
  /** What the request gets once nothing denies it, where that is not success: the effect was tried, which costs too much here. */
  readonly answers?: number
}

/** By /proc, for a bare system has no pgrep. */
const COUNT_SLEEPERS = 'grep -lsx sleep /proc/[0-9]*/comm | wc -l'

const inSandbox =
  (more: Asked = {}) =>
  ({ sandbox }: Place): Asked => ({ params: { id: sandbox.id }, ...more })

const files = async ({ sandbox }: Place): Promise<unknown> => (await sandbox.run(['find', '/workspace'])).stdout
const sandboxes = async ({ admin }: Place): Promise<unknown> =>
  (await admin.sandboxes.list({ state: 'all' })).items.map(({ data }) => data.name ?? '')
const said = [{ role: 'user', content: 'hello' }]
const runs = async ({ admin }: Place): Promise<unknown> => (await admin.runs.list()).items.length
const templates = async ({ admin }: Place): Promise<unknown> => admin.templates.list()
const artifacts = async ({ admin }: Place): Promise<unknown> =>
  (await admin.artifacts.list()).items.map(({ name }) => name)
const agents = async ({ admin }: Place): Promise<unknown> =>
  (await admin.agents.list()).items.map(({ id, approved, state, generation, version }) => [
    id,
    approved,
    state,
    generation,
    version,
  ])
const keys = async ({ admin }: Place): Promise<unknown> =>
  (await admin.keys.list({ all: true })).items.map(({ id, expiresAt }) => [id, expiresAt])
const budget = async ({ admin }: Place): Promise<unknown> => [
  (await admin.budgets.ofAgent('default')).limits,
  (await admin.budgets.ofTenant('default')).limits,
]

const draft = { document: { name: 'draft', rules: [] } }

const sealed = {
  origin: 'https://service.example',
  keyId: '0'.repeat(16),
  sealed: `als_${'A'.repeat(43)}.${'A'.repeat(16)}.AAAA`,
}
const tool = {
  description: 'Wanted.',
  origin: 'https://service.example',
  method: 'GET',
  path: '/',
  parameters: { properties: {} },
  scope: ['/'],
}

/** Each route that Guardian guards, with a request and how its effect is seen. One without a row does not compile. */
export const GUARDED: { readonly [N in GuardedRoute]: Row } = {
  createSandbox: { ask: () => ({ body: { name: 'wanted' } }), look: sandboxes },
  getOrCreateSandbox: { ask: () => ({ params: { name: 'wanted-too' }, body: {} }), look: sandboxes },
  connectSandbox: { ask: inSandbox({ body: {} }) },
  extendSandbox: {
    ask: inSandbox({ body: { ttlMs: 7_200_000 } }),
    // Commands that run keep it alive by its own hour all the time.
    look: async ({ admin, sandbox }) =>
      Date.parse((await admin.sandboxes.get(sandbox.id)).data.expiresAt) > Date.now() + 5_400_000,
  },
  changeLimits: {
    ask: inSandbox({ body: { pids: 99 } }),
    look: async ({ admin, sandbox }) => (await admin.sandboxes.get(sandbox.id)).data.limits,
  },
  submitJob: {
    ask: () => ({ body: { argv: ['true'] } }),
    look: async ({ admin }) => (await admin.jobs.list()).items.length,
    answers: 202,
  },
  collectArtifacts: { ask: inSandbox({ body: { patterns: ['there'] } }), look: artifacts },
  uploadArtifact: { ask: () => ({ query: { name: 'uploaded' }, bytes: 'x' }), look: artifacts },
  downloadArtifact: { ask: ({ artifact }) => ({ params: { id: artifact } }) },
  linkArtifact: { ask: ({ artifact }) => ({ params: { id: artifact }, body: {} }) },
  downloadLinkedArtifact: { ask: ({ link }) => ({ params: { token: link } }) },
  putSecret: {
    ask: () => ({ params: { name: 'wanted' }, body: sealed }),
    look: async ({ admin }) => (await admin.secrets.list()).length,
    // It was sealed to no key of the server.
    answers: 503,
  },
  putTool: {
    ask: () => ({ params: { name: 'wanted' }, body: tool }),
    look: async ({ admin }) => (await admin.tools.list()).length,
  },
  submitRun: {
    ask: () => ({ body: { graph: 'sandbox:agent', messages: said } }),
    look: runs,
    answers: 202,
  },
  openaiChat: { ask: () => ({ body: { model: 'sandbox:agent', messages: said } }), look: runs },
  putGraph: {
    ask: () => ({ params: { name: 'sandbox:put' }, body: { argv: ['true'] } }),
    look: async ({ admin }) => (await admin.catalog.list()).map(({ name }) => name),
  },
  resumeSandbox: {
    ask: ({ paused }) => ({ params: { id: paused.id } }),
    look: async ({ admin, paused }) => (await admin.sandboxes.get(paused.id)).data.state,
  },
  runCommand: {
    ask: inSandbox({ body: { argv: ['touch', '/home/user/ran'] } }),
    look: async ({ sandbox }) => [
      (await sandbox.files.list('/home/user')).entries.map(({ name }) => name),
      (await sandbox.commands()).items.length,
    ],
  },
  signalCommand: {
    ask: ({ sandbox, sleeper }) => ({
      params: { id: sandbox.id, command: sleeper.id },
      body: { signal: 'SIGKILL' },
    }),
    look: async ({ sandbox }) => (await sandbox.run(['sh', '-c', COUNT_SLEEPERS])).stdout,
  },
  writeStdin: {
    ask: ({ sandbox, listener }) => ({
      params: { id: sandbox.id, command: listener.id },
      query: { end: 'true' },
      bytes: 'heard',
    }),
    look: async ({ sandbox }) => (await sandbox.run(['cat', '/home/user/said'])).stdout,
  },
  readFile: { ask: inSandbox({ query: { path: 'there' } }) },
  writeFile: { ask: inSandbox({ query: { path: 'written' }, bytes: 'x' }), look: files },
  readArchive: { ask: inSandbox({ query: { path: '/workspace' } }) },
  writeArchive: {
    ask: inSandbox({ query: { path: 'unpacked' }, bytes: tarOf([{ name: 'packed', content: 'x' }]) }),
    look: files,
  },
  statFile: { ask: inSandbox({ query: { path: 'there' } }) },
  listFiles: { ask: inSandbox({ query: { path: '/workspace' } }) },
  makeDirectory: { ask: inSandbox({ body: { path: 'made' } }), look: files },
  moveFile: { ask: inSandbox({ body: { from: 'movable', to: 'moved' } }), look: files },
  removeFile: { ask: inSandbox({ query: { path: 'removable' } }), look: files },
  diffWorktree: { ask: inSandbox(), answers: 404 },
  readWorktreePatch: { ask: inSandbox({ query: { seal: 'a'.repeat(64) } }), answers: 404 },
  exportWorktree: { ask: inSandbox({ body: {} }), answers: 404 },
  createSession: {
    ask: () => ({ body: { runtime: 'bash', create: { name: 'of-session' } } }),
    look: async (of) => [await sandboxes(of), (await of.admin.sessions.list({ state: 'all' })).items.length],
  },
  restartSession: {
    ask: ({ session }) => ({ params: { id: session.id } }),
    look: async ({ admin, session }) => (await admin.sessions.get(session.id)).data.restarts,
  },
  runStep: {
    ask: ({ session }) => ({ params: { id: session.id }, body: { code: 'touch /home/user/stepped' } }),
    look: async ({ sandbox, session }) => [
      (await sandbox.files.list('/home/user')).entries.map(({ name }) => name),
      (await session.steps()).items.length,
    ],
  },
  putTemplate: { ask: () => ({ params: { name: 'put' }, body: { packages: ['jq'] } }), look: templates },
  buildTemplate: {
    ask: () => ({ params: { name: 'unbuilt' } }),
    look: async ({ admin }) => (await admin.templates.get('unbuilt')).state,
    answers: 503,
  },
  importTemplate: {
    ask: () => ({ params: { name: 'imported' }, bytes: tarOf([{ name: 'only', content: 'x' }]) }),
    look: templates,
  },
  registerAgent: { ask: () => ({ body: { id: 'registered' } }), look: agents },
  updateAgent: { ask: () => ({ params: { id: 'unapproved' }, body: { version: '2' } }), look: agents },
  approveAgent: { ask: () => ({ params: { id: 'unapproved' }, body: {} }), look: agents },
  resumeAgent: { ask: () => ({ params: { id: 'suspended' }, body: {} }), look: agents },
  addGrant: {
    ask: () => ({ params: { id: 'unapproved' }, body: { path: '/usr/share' } }),
    look: async ({ admin }) => admin.grants.list('unapproved'),
  },
  createKey: { ask: () => ({ body: { name: 'made', role: 'developer' } }), look: keys },
  rotateKey: { ask: ({ key }) => ({ params: { id: key }, body: {} }), look: keys },
  createTenant: {
    ask: () => ({ body: { id: 'made' } }),
    look: async ({ admin }) => (await admin.tenants.list()).items,
  },
  setAgentBudget: { ask: () => ({ params: { id: 'default' }, body: { sandboxes: 90 } }), look: budget },
  setTenantBudget: { ask: () => ({ params: { id: 'default' }, body: { sandboxes: 900 } }), look: budget },
  backtestPolicy: { ask: () => ({ body: draft }) },
  events: { ask: () => ({}) },
  agentEvents: { ask: () => ({ params: { id: 'default' } }) },
  sandboxEvents: { ask: inSandbox() },
  auditEvents: { ask: () => ({}) },
  auditExport: { ask: () => ({}) },
}
