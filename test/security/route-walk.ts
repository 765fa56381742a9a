import type { ErrorCode, Role, RouteName } from '@airlock/contract'
import type { ToolInput } from '@airlock/sdk'

/** What a tenant has, by id: another tenant's caller knows all of it and gets none. */
export interface Things {
  readonly agent: string
  readonly grant: string
  readonly sandbox: string
  readonly name: string
  readonly command: string
  readonly session: string
  readonly step: string
  readonly job: string
  readonly artifact: string
  readonly run: string
  readonly graph: string
  readonly template: string
  readonly key: string
  readonly policy: string
  readonly approval: string
  readonly webhook: string
  readonly secret: string
  readonly tool: string
  readonly tenant: string
  readonly file: string
}

export interface Asked {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface Steps {
  /** The request about these things. */
  ask(of: Things): Asked
  /** What hides them; undefined where the route lists what is the caller's own, or makes something of its own. */
  readonly hidden?: ErrorCode
  /** What the caller gets for things of its own, where that is not 200. */
  readonly answers?: number
  /** The answer repeats names that the caller gave in earlier attempts. */
  readonly repeats?: boolean
  /** Who may have an effect by it; `nobody` where that costs too much here. */
  readonly owner?: Role | 'platform' | 'nobody'
  /** The platform reaches it in every tenant. */
  readonly platform?: 'may'
  /** The request that names no agent, where one may be named: whoever is bound to one agent means that one. */
  readonly unnamed?: Asked
  /** What is the tenant's and not an agent's is open to who is bound, or closed to all of them. */
  readonly bound?: 'may' | 'forbidden'
}

const nothing = (): Asked => ({})
const inSandbox =
  (more: (of: Things) => Asked = nothing) =>
  (of: Things): Asked => ({ params: { id: of.sandbox }, ...more(of) })
const ofCommand =
  (more: Asked = {}) =>
  (of: Things): Asked => ({ params: { id: of.sandbox, command: of.command }, ...more })
const ofSession =
  (more: Asked = {}) =>
  (of: Things): Asked => ({ params: { id: of.session }, ...more })
const ofStep = (of: Things): Asked => ({ params: { id: of.session, step: of.step } })
const ofJob = (of: Things): Asked => ({ params: { id: of.job } })
const ofArtifact = (of: Things): Asked => ({ params: { id: of.artifact } })
const ofRun = (of: Things): Asked => ({ params: { id: of.run } })
const ofGraph = (of: Things): Asked => ({ params: { name: of.graph } })
const said = [{ role: 'user', content: 'hello' }]
const ofTemplate =
  (more: Asked = {}) =>
  (of: Things): Asked => ({ params: { name: of.template }, ...more })
const ofAgent = (of: Things): Asked => ({ params: { id: of.agent } })
const ofGrant = (of: Things): Asked => ({ params: { id: of.agent, grant: of.grant } })
const ofKey = (of: Things): Asked => ({ params: { id: of.key } })
const ofPolicy = (of: Things): Asked => ({ params: { name: of.policy } })
const draft = { document: { name: 'own-policy', rules: [] } }
const reading = { kind: 'file', action: 'read', path: '/etc/x' }
const ofApproval = (of: Things): Asked => ({ params: { id: of.approval } })
const ofWebhook = (of: Things): Asked => ({ params: { id: of.webhook } })
const ofSecret = (of: Things): Asked => ({ params: { name: of.secret } })
const ofTool = (of: Things): Asked => ({ params: { name: of.tool } })
const SEALED = {
  origin: 'https://service.example',
  keyId: '0'.repeat(16),
  sealed: `als_${'A'.repeat(43)}.${'A'.repeat(16)}.AAAA`,
}
export const WALKED_TOOL: ToolInput = {
  description: 'Walked.',
  origin: 'https://service.example',
  method: 'GET',
  path: '/',
  parameters: { properties: {} },
  scope: ['/'],
}
const atFile = inSandbox((of) => ({ query: { path: of.file } }))

const killOf = (of: Things): Asked => ({ body: { scope: 'sandbox', target: of.sandbox } })

const SANDBOX = { hidden: 'sandbox_not_found' } as const
const SESSION = { hidden: 'session_not_found' } as const
const JOB = { hidden: 'job_not_found' } as const
const ARTIFACT = { hidden: 'artifact_not_found' } as const
const RUN = { hidden: 'run_not_found' } as const
const GRAPH = { hidden: 'graph_not_found', bound: 'may' } as const
const AGENT = { hidden: 'agent_not_found' } as const
const EVIDENCE = { ask: nothing, bound: 'forbidden', owner: 'auditor', repeats: true } as const
const KILL = { hidden: 'sandbox_not_found', platform: 'may', bound: 'forbidden' } as const
const POLICY = { hidden: 'policy_not_found', bound: 'may' } as const
const APPROVAL = { hidden: 'approval_not_found' } as const
const WEBHOOK = { hidden: 'webhook_not_found' } as const
const SECRET = { hidden: 'secret_not_found' } as const
const TOOL = { hidden: 'tool_not_found', bound: 'may' } as const
const KEY = { hidden: 'key_not_found', platform: 'may' } as const
/** Templates are the tenant's: whoever is bound to an agent may use and change them. */
const TEMPLATE = { hidden: 'template_not_found', bound: 'may' } as const

export const WALK: { readonly [N in RouteName]: Steps } = {
  createSandbox: { ask: (of) => ({ body: { agent: of.agent } }), hidden: 'agent_not_found', unnamed: {} },
  listSandboxes: { ask: (of) => ({ query: { agent: of.agent, state: 'all' } }), unnamed: { query: { state: 'all' } } },
  getSandbox: { ask: inSandbox(), ...SANDBOX },
  getOrCreateSandbox: {
    ask: (of) => ({ params: { name: of.name }, body: { agent: of.agent } }),
    hidden: 'agent_not_found',
    unnamed: { params: { name: 'unnamed-box' } },
  },
  connectSandbox: { ask: inSandbox(), ...SANDBOX },
  extendSandbox: { ask: inSandbox(), ...SANDBOX },
  changeLimits: { ask: inSandbox(() => ({ body: { pids: 99 } })), ...SANDBOX },
  pauseSandbox: { ask: inSandbox(), ...SANDBOX },
  resumeSandbox: { ask: inSandbox(), ...SANDBOX },
  terminateSandbox: { ask: inSandbox(), ...SANDBOX },
  runCommand: { ask: inSandbox(() => ({ body: { argv: ['true'] } })), ...SANDBOX },
  listCommands: { ask: inSandbox(), ...SANDBOX },
  getCommand: { ask: ofCommand(), ...SANDBOX },
  commandOutput: { ask: ofCommand(), ...SANDBOX },
  fullCommandOutput: { ask: ofCommand(), ...SANDBOX },
  signalCommand: { ask: ofCommand({ body: { signal: 'SIGKILL' } }), ...SANDBOX },
  writeStdin: { ask: ofCommand(), ...SANDBOX },
  readFile: { ask: atFile, ...SANDBOX },
  writeFile: { ask: atFile, ...SANDBOX },
  readArchive: { ask: inSandbox(() => ({ query: { path: '/workspace' } })), ...SANDBOX },
  writeArchive: { ask: inSandbox(() => ({ query: { path: '/workspace' } })), ...SANDBOX, answers: 422 },
  removeFile: { ask: atFile, ...SANDBOX },
  statFile: { ask: atFile, ...SANDBOX },
  listFiles: { ask: inSandbox(() => ({ query: { path: '/workspace' } })), ...SANDBOX },
  makeDirectory: { ask: inSandbox(() => ({ body: { path: 'made' } })), ...SANDBOX },
  moveFile: { ask: inSandbox((of) => ({ body: { from: of.file, to: 'moved' } })), ...SANDBOX },
  diffWorktree: { ask: inSandbox(), ...SANDBOX, answers: 404 },
  readWorktreePatch: { ask: inSandbox(() => ({ query: { seal: 'a'.repeat(64) } })), ...SANDBOX, answers: 404 },
  exportWorktree: { ask: inSandbox(() => ({ body: {} })), ...SANDBOX, answers: 404 },
  createSession: {
    ask: (of) => ({ body: { sandbox: of.sandbox, runtime: 'bash' } }),
    ...SANDBOX,
    unnamed: { body: { runtime: 'bash' } },
  },
  listSessions: {
    ask: (of) => ({ query: { sandbox: of.sandbox, state: 'all' } }),
    unnamed: { query: { state: 'all' } },
  },
  getSession: { ask: ofSession(), ...SESSION },
  interruptSession: { ask: ofSession(), ...SESSION },
  restartSession: { ask: ofSession(), ...SESSION },
  terminateSession: { ask: ofSession(), ...SESSION },
  runStep: { ask: ofSession({ body: { code: 'true' } }), ...SESSION },
  listSteps: { ask: ofSession(), ...SESSION },
  getStep: { ask: ofStep, ...SESSION },
  stepOutput: { ask: ofStep, ...SESSION },
  submitJob: {
    ask: (of) => ({ body: { agent: of.agent, argv: ['true'] } }),
    hidden: 'agent_not_found',
    answers: 202,
    unnamed: { body: { argv: ['true'] } },
  },
  listJobs: { ask: (of) => ({ query: { agent: of.agent } }), unnamed: {} },
  getJob: { ask: ofJob, ...JOB },
  cancelJob: { ask: ofJob, ...JOB },
  jobLogs: { ask: ofJob, ...JOB },
  collectArtifacts: { ask: inSandbox(() => ({ body: { patterns: ['x'] } })), ...SANDBOX },
  uploadArtifact: {
    ask: (of) => ({ query: { name: 'walked', agent: of.agent } }),
    hidden: 'agent_not_found',
    unnamed: { query: { name: 'walked' } },
  },
  listArtifacts: { ask: (of) => ({ query: { agent: of.agent } }), unnamed: {} },
  getArtifact: { ask: ofArtifact, ...ARTIFACT },
  downloadArtifact: { ask: ofArtifact, ...ARTIFACT },
  linkArtifact: { ask: (of) => ({ ...ofArtifact(of), body: {} }), ...ARTIFACT },
  downloadLinkedArtifact: { ask: () => ({ params: { token: `e30.${'A'.repeat(43)}` } }), answers: 403 },
  removeArtifact: { ask: ofArtifact, ...ARTIFACT },
  listCatalog: { ask: nothing, bound: 'may' },
  getGraph: { ask: ofGraph, ...GRAPH },
  putGraph: { ask: () => ({ params: { name: 'sandbox:own' }, body: { argv: ['true'] } }), bound: 'may' },
  removeGraph: { ask: ofGraph, ...GRAPH },
  submitRun: {
    ask: (of) => ({ body: { agent: of.agent, graph: 'sandbox:agent', messages: said } }),
    hidden: 'agent_not_found',
    answers: 202,
    unnamed: { body: { graph: 'sandbox:agent', messages: said } },
  },
  listRuns: { ask: (of) => ({ query: { agent: of.agent } }), unnamed: {} },
  getRun: { ask: ofRun, ...RUN },
  cancelRun: { ask: ofRun, ...RUN },
  runEvents: { ask: ofRun, ...RUN },
  runLog: { ask: ofRun, ...RUN },
  openaiChat: {
    ask: (of) => ({ body: { model: of.graph, messages: said } }),
    hidden: 'graph_not_found',
    bound: 'may',
    owner: 'nobody',
  },
  openaiModels: { ask: nothing, bound: 'may' },
  listTemplates: { ask: nothing, bound: 'may' },
  getTemplate: { ask: ofTemplate(), ...TEMPLATE },
  putTemplate: { ask: () => ({ params: { name: 'own-template' }, body: { packages: ['jq'] } }), bound: 'may' },
  buildTemplate: { ask: ofTemplate(), ...TEMPLATE, owner: 'nobody' },
  importTemplate: { ask: () => ({ params: { name: 'own-image' } }), bound: 'may', answers: 422 },
  removeTemplate: { ask: ofTemplate(), ...TEMPLATE },
  registerAgent: { ask: () => ({ body: { id: 'own-agent' } }), bound: 'forbidden' },
  listAgents: { ask: nothing },
  getAgent: { ask: ofAgent, ...AGENT },
  updateAgent: { ask: ofAgent, ...AGENT },
  approveAgent: { ask: ofAgent, ...AGENT },
  revokeAgent: { ask: ofAgent, ...AGENT },
  suspendAgent: { ask: ofAgent, ...AGENT },
  resumeAgent: { ask: ofAgent, ...AGENT },
  heartbeatAgent: { ask: ofAgent, ...AGENT },
  removeAgent: { ask: ofAgent, ...AGENT },
  addGrant: {
    ask: (of) => ({ params: { id: of.agent }, body: { path: '/usr/lib', tenant: of.tenant } }),
    owner: 'platform',
  },
  listGrants: { ask: ofAgent, ...AGENT },
  removeGrant: { ask: ofGrant, ...AGENT },
  turnKillswitchOn: { ask: killOf, ...KILL },
  listKillswitches: { ask: nothing, bound: 'forbidden', platform: 'may' },
  liftKillswitch: { ask: killOf, ...KILL },
  createKey: {
    ask: (of) => ({ body: { name: 'walk', role: 'developer', tenant: of.tenant } }),
    hidden: 'tenant_not_found',
    platform: 'may',
  },
  listKeys: { ask: (of) => ({ query: { tenant: of.tenant } }), hidden: 'tenant_not_found', platform: 'may' },
  getKey: { ask: ofKey, ...KEY },
  rotateKey: { ask: ofKey, ...KEY },
  revokeKey: { ask: ofKey, ...KEY },
  createTenant: { ask: () => ({ body: { id: 'made-tenant' } }), owner: 'platform' },
  listTenants: { ask: nothing, platform: 'may', bound: 'may' },
  getTenant: {
    ask: (of) => ({ params: { id: of.tenant } }),
    hidden: 'tenant_not_found',
    platform: 'may',
    bound: 'may',
  },
  listPolicies: { ask: nothing, bound: 'may' },
  getPolicy: { ask: ofPolicy, ...POLICY },
  listPolicyVersions: { ask: ofPolicy, ...POLICY },
  putPolicy: { ask: () => ({ params: { name: 'own-policy' }, body: draft }) },
  removePolicy: { ask: ofPolicy, ...POLICY },
  checkPolicy: { ask: () => ({ body: draft }) },
  evaluatePolicies: {
    ask: (of) => ({
      body: { point: 'file.read', sandbox: of.sandbox, operation: reading },
    }),
    ...SANDBOX,
    unnamed: { body: { point: 'file.read', operation: reading } },
  },
  backtestPolicy: { ask: () => ({ body: draft }), repeats: true },
  getGuardian: { ask: nothing, bound: 'may' },
  listModels: { ask: nothing, bound: 'may' },
  getLlmStatus: { ask: nothing, bound: 'may' },
  listRules: { ask: nothing, bound: 'may' },
  getAgentBudget: { ask: ofAgent, ...AGENT },
  setAgentBudget: { ask: ofAgent, ...AGENT },
  getTenantBudget: {
    ask: (of) => ({ params: { id: of.tenant } }),
    hidden: 'tenant_not_found',
    platform: 'may',
    bound: 'forbidden',
  },
  setTenantBudget: { ask: (of) => ({ params: { id: of.tenant } }), owner: 'platform' },
  getUsage: {
    ask: (of) => ({ query: { tenant: of.tenant } }),
    hidden: 'tenant_not_found',
    platform: 'may',
    bound: 'may',
    unnamed: {},
  },
  listApprovals: { ask: () => ({ query: { state: 'all' } }), unnamed: { query: { state: 'all' } } },
  approvalEvents: { ask: nothing, unnamed: {} },
  getApproval: { ask: ofApproval, ...APPROVAL },
  approveApproval: { ask: ofApproval, ...APPROVAL },
  rejectApproval: { ask: ofApproval, ...APPROVAL },
  revokeApproval: { ask: ofApproval, ...APPROVAL },
  getSealKey: { ask: nothing },
  listSecrets: { ask: nothing },
  // It was sealed to no key of the server.
  putSecret: { ask: () => ({ params: { name: 'own-secret' }, body: SEALED }), answers: 503 },
  removeSecret: { ask: ofSecret, ...SECRET },
  listTools: { ask: nothing, bound: 'may' },
  getTool: { ask: ofTool, ...TOOL },
  putTool: { ask: () => ({ params: { name: 'own-tool' }, body: WALKED_TOOL }) },
  removeTool: { ask: ofTool, hidden: 'tool_not_found' },
  createWebhook: { ask: () => ({ body: { url: 'http://127.0.0.1:9/', events: ['kill'] } }) },
  listWebhooks: { ask: nothing },
  getWebhook: { ask: ofWebhook, ...WEBHOOK },
  removeWebhook: { ask: ofWebhook, ...WEBHOOK },
  events: { ask: nothing, repeats: true, unnamed: {} },
  agentEvents: { ask: ofAgent, ...AGENT },
  sandboxEvents: { ask: inSandbox(), ...SANDBOX },
  agentSummary: { ask: ofAgent, ...AGENT },
  // It names the tenant, which who is bound to another agent of it knows.
  tenantMetrics: { ask: nothing, repeats: true, unnamed: {} },
  sandboxMetrics: { ask: inSandbox(), ...SANDBOX },
  agentMetrics: { ask: ofAgent, ...AGENT },
  auditStats: EVIDENCE,
  auditEvents: EVIDENCE,
  auditExport: EVIDENCE,
  auditHead: EVIDENCE,
  auditChains: EVIDENCE,
  // Nothing of it is broken.
  auditQuarantine: { ask: (of) => ({ body: { tenant: of.tenant } }), owner: 'nobody' },
  whoami: { ask: nothing, bound: 'may' },
  health: { ask: nothing },
  ready: { ask: nothing },
  metrics: { ask: nothing, owner: 'platform' },
  openapi: { ask: nothing },
  docs: { ask: nothing },
}

/** The tools at `/mcp`, each with arguments about these things; `lists` shows only the caller's own and refuses nobody. */
interface ToolSteps {
  ask(of: Things): Readonly<Record<string, unknown>>
  readonly lists?: true
  /** Auditors may too. */
  readonly reads?: true
}

export const TOOL_WALK: Readonly<Record<string, ToolSteps>> = {
  create_sandbox: { ask: (of) => ({ template: of.template }) },
  list_sandboxes: { ask: () => ({ state: 'all' }), lists: true },
  run_command: { ask: (of) => ({ sandbox: of.sandbox, argv: ['true'] }) },
  run_code: { ask: (of) => ({ language: 'bash', code: 'true', sandbox: of.sandbox }) },
  create_session: { ask: (of) => ({ runtime: 'bash', sandbox: of.sandbox }) },
  run_step: { ask: (of) => ({ session: of.session, code: 'true' }) },
  read_file: { ask: (of) => ({ sandbox: of.sandbox, path: of.file }) },
  write_file: { ask: (of) => ({ sandbox: of.sandbox, path: of.file, content: 'x' }) },
  list_files: { ask: (of) => ({ sandbox: of.sandbox }) },
  terminate: { ask: (of) => ({ sandbox: of.sandbox }) },
  run_job: { ask: (of) => ({ agent: of.agent, argv: ['true'] }) },
  get_job: { ask: (of) => ({ id: of.job }), reads: true },
  read_job_log: { ask: (of) => ({ id: of.job }) },
  collect_artifacts: { ask: (of) => ({ sandbox: of.sandbox, patterns: ['x'] }) },
  list_artifacts: { ask: () => ({}), lists: true },
  link_artifact: { ask: (of) => ({ id: of.artifact }) },
  cancel_job: { ask: (of) => ({ id: of.job }) },
}
