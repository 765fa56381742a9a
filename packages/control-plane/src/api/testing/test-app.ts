import { AirlockError } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import type { TestCore } from './test-core.ts'

type OfCore = Omit<
  App,
  | 'agents'
  | 'grants'
  | 'budgets'
  | 'keys'
  | 'tenants'
  | 'usage'
  | 'policies'
  | 'killswitch'
  | 'approvals'
  | 'webhooks'
  | 'secrets'
  | 'tools'
  | 'events'
>

/** What the core for tests does, by subject. It is asked at each call, for a test may change it. */
export function testApp(core: TestCore): OfCore {
  return { ...sandboxesOf(core), ...codeOf(core), ...restOf(core), ...EMPTY }
}

const noGraph = async () => Promise.reject(new AirlockError('graph_not_found'))
const noRun = async () => Promise.reject(new AirlockError('run_not_found'))

/** Without agent programs: they run on a whole server, in `test/runs`. */
const EMPTY: Pick<App, 'catalog' | 'runs'> = {
  catalog: { list: async () => [], get: noGraph, put: noGraph, remove: noGraph },
  runs: {
    submit: noGraph,
    list: async () => ({ items: [], nextCursor: null }),
    get: noRun,
    cancel: noRun,
    log: noRun,
    answer: noRun,
    async *events() {
      yield* []
      throw new AirlockError('run_not_found')
    },
  },
}

function sandboxesOf(
  core: TestCore,
): Pick<App, 'creation' | 'sandboxes' | 'connections' | 'limitChanges' | 'files' | 'worktrees'> {
  return {
    creation: {
      create: async (caller, body) => core.createSandbox(caller, body),
      getOrCreate: async (caller, body) => core.getOrCreateSandbox(caller, body),
    },
    sandboxes: {
      get: async (caller, id) => core.getSandbox(caller, id),
      list: async (caller, query) => core.listSandboxes(caller, query),
      extend: async (caller, id, { ttlMs }) => core.extendSandbox(caller, id, ttlMs),
      pause: async (caller, id) => core.pauseSandbox(caller, id),
      resume: async (caller, id) => core.resumeSandbox(caller, id),
      terminate: async (caller, id) => core.terminateSandbox(caller, id),
      counts: async () => core.counts(),
    },
    connections: { connect: async (caller, id) => core.connectSandbox(caller, id) },
    worktrees: { diff: noWorktree, patch: noWorktree, export: noWorktree },
    limitChanges: { change: async (caller, id, asked) => core.changeLimits(caller, id, asked) },
    files: {
      read: async (caller, id, file) => core.readFile(caller, id, file),
      write: async (caller, id, file) => core.writeFile(caller, id, file),
      pack: async (caller, id, of) => core.readArchive(caller, id, of),
      unpack: async (caller, id, of) => core.writeArchive(caller, id, of),
      operate: async (caller, id, operation) => core.fileOperation(caller, id, operation),
    },
  }
}

async function noWorktree(): Promise<never> {
  throw new AirlockError('worktree_not_found')
}

function codeOf(core: TestCore): Pick<App, 'commands' | 'sessions' | 'steps' | 'jobs' | 'artifacts'> {
  return {
    artifacts: {
      collect: async (caller, id, { patterns, signal }) =>
        core.artifacts.collect(id, {
          patterns,
          read: async (path) => {
            const { bytes } = await core.readFile(caller, id, { path, signal })
            return Buffer.concat(await Array.fromAsync(bytes))
          },
        }),
      upload: async (_caller, of) => core.artifacts.upload(of),
      list: async (_caller, query) => core.artifacts.list(query),
      get: async (_caller, id) => core.artifacts.get(id),
      download: async (_caller, id) => core.artifacts.download(id),
      link: async (_caller, id) => core.artifacts.link(id),
      downloadLinked: async () => core.artifacts.downloadLinked(),
      remove: async (_caller, id) => core.artifacts.remove(id),
    },
    jobs: {
      submit: async (_caller, body) => core.jobs.submit(body),
      list: async (_caller, query) => core.jobs.list(query),
      get: async (_caller, id) => core.jobs.get(id),
      cancel: async (_caller, id) => core.jobs.cancel(id),
      events: (_caller, id, options) => core.jobs.events(id, options),
    },
    commands: {
      run: async (caller, id, { follow, ...body }) => {
        const noun = await core.runCommand(caller, id, body)
        return { noun, events: core.commandEvents(caller, { sandbox: id, command: noun.id }, fromStart(follow)) }
      },
      list: async (caller, id) => core.listCommands(caller, id),
      get: async (caller, of) => core.getCommand(caller, of),
      events: (caller, of, options) => core.commandEvents(caller, of, options),
      fullOutput: async (caller, of) => core.fullCommandOutput(caller, of),
      signal: async (caller, of, signal) => core.signalCommand(caller, of, signal),
      writeStdin: async (caller, of, input) => core.writeStdin(caller, of, input),
    },
    sessions: {
      create: async (caller, body) => core.createSession(caller, body),
      list: async (caller, query) => core.listSessions(caller, query),
      get: async (caller, id) => core.getSession(caller, id),
      interrupt: async (caller, id, step) => core.interruptSession(caller, id, step),
      restart: async (caller, id) => core.restartSession(caller, id),
      terminate: async (caller, id) => core.terminateSession(caller, id),
    },
    steps: {
      run: async (caller, id, { follow, ...body }) => {
        const noun = await core.runStep(caller, id, body)
        return { noun, events: core.stepEvents(caller, { session: id, step: noun.id }, fromStart(follow)) }
      },
      list: async (caller, id) => core.listSteps(caller, id),
      get: async (caller, of) => core.getStep(caller, of),
      events: (caller, of, options) => core.stepEvents(caller, of, options),
    },
  }
}

function fromStart(signal = new AbortController().signal) {
  return { from: 0, follow: true, signal }
}

function restOf(core: TestCore): Pick<App, 'templates' | 'backtests' | 'audit' | 'models' | 'readiness'> {
  return {
    templates: {
      list: async () => core.listTemplates(),
      get: async (caller, name) => core.getTemplate(caller, name),
      put: async (caller, name, spec) => core.putTemplate(caller, name, spec),
      build: (caller, name) => core.buildTemplate(caller, name),
      import: async (caller, name, image) => core.importTemplate(caller, name, image),
      remove: async (caller, name) => core.removeTemplate(caller, name),
    },
    backtests: { run: async () => core.backtestPolicy() },
    audit: {
      events: async () => core.auditEvents(),
      export: async () => core.auditExport(),
      head: async () => core.auditHead(),
      chains: async () => core.auditChains(),
      quarantine: async (caller, tenant) => core.auditQuarantine(caller, tenant),
    },
    models: { list: () => [], status: async () => ({ upstreams: [], underWay: { calls: 0, microDollars: 0 } }) },
    readiness: {
      assert: () => {},
      get state() {
        return core.ready
      },
    },
  }
}
