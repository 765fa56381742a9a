import { Command } from 'commander'
import { readConfig } from './config.ts'
import { Context } from './context.ts'
import { Exit, reportFailure } from './failure.ts'
import { unknownVerb } from './unknown-verb.ts'

interface Verb {
  /** A heading of the help, over this verb and those below it. */
  readonly heading?: string
  readonly about: string
  readonly alias?: string
  readonly load: () => Promise<(command: Command, context: Context) => void>
}

/** Only the verb that is used is loaded: the others would cost every start. */
const VERBS: Readonly<Record<string, Verb>> = {
  run: {
    heading: 'Run code:',
    about: 'Run a file or a command in a sandbox of its own, which is gone afterwards.',
    load: async () => (await import('./verbs/run.ts')).defineRun,
  },
  python: {
    about: 'Python that remembers, in a sandbox: a prompt, a file, or -c.',
    load: async () => (await import('./verbs/interpreter.ts')).defineInterpreter('python'),
  },
  node: {
    about: 'JavaScript and TypeScript that remember, in a sandbox: a prompt, a file, or -c.',
    load: async () => (await import('./verbs/interpreter.ts')).defineInterpreter('node'),
  },
  bash: {
    about: 'A shell that remembers, in a sandbox: a prompt, a file, or -c.',
    load: async () => (await import('./verbs/interpreter.ts')).defineInterpreter('bash'),
  },
  create: {
    heading: 'Sandboxes:',
    about: 'Create a sandbox and print its id.',
    load: async () => (await import('./verbs/create.ts')).defineCreate,
  },
  exec: {
    about: 'Run a command in a sandbox that is there.',
    load: async () => (await import('./verbs/exec.ts')).defineExec,
  },
  ls: {
    about: 'List sandboxes, newest first.',
    load: async () => (await import('./verbs/ls.ts')).defineLs,
  },
  top: {
    about: 'Watch what the living sandboxes use: processors, memory, processes, disk.',
    load: async () => (await import('./verbs/top.ts')).defineTop,
  },
  metrics: {
    about: 'Show what a sandbox or an agent uses and used, against its limits.',
    load: async () => (await import('./verbs/metrics.ts')).defineMetrics,
  },
  inspect: {
    about: 'Show everything about a sandbox.',
    load: async () => (await import('./verbs/inspect.ts')).defineInspect,
  },
  connect: {
    about: 'Renew the token of a sandbox, and show how a program inside reaches the server.',
    load: async () => (await import('./verbs/connect.ts')).defineConnect,
  },
  extend: {
    about: 'Let a sandbox live longer, never past its maximum lifetime.',
    load: async () => (await import('./verbs/extend.ts')).defineExtend,
  },
  limits: {
    about: 'Show what a sandbox is held to, or change it while it lives.',
    load: async () => (await import('./verbs/limits.ts')).defineLimits,
  },
  pause: {
    about: 'Stop the processes of sandboxes where they stand; their time stops too.',
    load: async () => (await import('./verbs/pause.ts')).definePause,
  },
  resume: {
    about: 'Let paused sandboxes go on, with the time that they had left.',
    load: async () => (await import('./verbs/pause.ts')).defineResume,
  },
  terminate: {
    about: 'End sandboxes. One that has ended stays as it is.',
    alias: 'rm',
    load: async () => (await import('./verbs/terminate.ts')).defineTerminate,
  },
  cp: {
    about: 'Copy files and directories into a sandbox or out of it.',
    load: async () => (await import('./verbs/cp.ts')).defineCp,
  },
  worktree: {
    about: 'Work on a git repository: ls, diff, export.',
    load: async () => (await import('./verbs/worktree.ts')).defineWorktree,
  },
  logs: {
    about: 'Print the output of a command.',
    load: async () => (await import('./verbs/logs.ts')).defineLogs,
  },
  ask: {
    heading: 'Agents that answer:',
    about: 'Ask an agent program, and print its answer as it comes: airlock ask sandbox:agent "…"',
    load: async () => (await import('./verbs/ask.ts')).defineAsk,
  },
  catalog: {
    about: 'Agent programs: ls, inspect; put, rm with the admin key.',
    load: async () => (await import('./verbs/catalog.ts')).defineCatalog,
  },
  'agent-run': {
    about: 'Runs of agent programs: ls, inspect, events, logs, cancel.',
    load: async () => (await import('./verbs/agent-run.ts')).defineAgentRun,
  },
  session: {
    heading: 'Sessions, jobs, artifacts, templates, tools for agents:',
    about: 'Interpreters that remember: ls, inspect, interrupt, restart, rm.',
    load: async () => (await import('./verbs/session.ts')).defineSession,
  },
  job: {
    about: 'Work that outlives its caller: run, ls, inspect, logs, cancel.',
    load: async () => (await import('./verbs/job.ts')).defineJob,
  },
  artifact: {
    about: 'Files that outlive their sandbox: ls, get, put, rm, url.',
    load: async () => (await import('./verbs/artifact.ts')).defineArtifact,
  },
  template: {
    about: 'What sandboxes start from: ls, build, import, rm.',
    load: async () => (await import('./verbs/template.ts')).defineTemplate,
  },
  mcp: {
    about: 'Serve the tools for agents over stdio, by the Model Context Protocol.',
    load: async () => (await import('./verbs/mcp.ts')).defineMcp,
  },
  agent: {
    heading: 'Agents, policies, budgets, keys:',
    about: 'Agents: register, ls, inspect, summary; approve, revoke, suspend, resume, rm with the admin key.',
    load: async () => (await import('./verbs/agent.ts')).defineAgent,
  },
  grant: {
    about: 'Host paths mounted for an agent: add, ls, rm; uses the admin key.',
    alias: 'acl',
    load: async () => (await import('./verbs/grant.ts')).defineGrant,
  },
  guardian: {
    about: 'Policy decisions: status, the rules in force, and a check of one command.',
    load: async () => (await import('./verbs/guardian.ts')).defineGuardian,
  },
  policy: {
    about: 'Policies that Guardian enforces: ls, get, put, rm, check, backtest.',
    load: async () => (await import('./verbs/policy.ts')).definePolicy,
  },
  egress: {
    about: 'Hosts that sandboxes may connect to: ls, allow, deny; uses the admin key.',
    load: async () => (await import('./verbs/egress.ts')).defineEgress,
  },
  tool: {
    about: 'Services that programs in sandboxes call: ls, get, put, rm, allow, deny; uses the admin key.',
    load: async () => (await import('./verbs/tool.ts')).defineTool,
  },
  secret: {
    about: 'Credentials of tools: put, ls, rm; uses the admin key.',
    load: async () => (await import('./verbs/secret.ts')).defineSecret,
  },
  budget: {
    about: 'What agents may use: get, and set with the admin key.',
    load: async () => (await import('./verbs/budget.ts')).defineBudget,
  },
  llm: {
    about: 'Models for programs in sandboxes: status, models, test.',
    load: async () => (await import('./verbs/llm.ts')).defineLlm,
  },
  usage: {
    about: 'What was used: compute, calls of models, tokens, dollars.',
    load: async () => (await import('./verbs/usage.ts')).defineUsage,
  },
  kill: {
    about: 'Emergency stop of a sandbox, an agent, a tenant or everything, until --lift; uses the admin key.',
    load: async () => (await import('./verbs/kill.ts')).defineKill,
  },
  keys: {
    about: 'API keys: create, ls, rotate, revoke; uses the admin key.',
    load: async () => (await import('./verbs/keys.ts')).defineKeys,
  },
  tenant: {
    about: 'Tenants: create, ls; uses the admin key.',
    load: async () => (await import('./verbs/tenant.ts')).defineTenant,
  },
  approvals: {
    about: 'What agents ask for and people answer: ls, show, watch, approve, reject, revoke; uses the admin key.',
    load: async () => (await import('./verbs/approvals.ts')).defineApprovals,
  },
  webhook: {
    about: 'Webhooks for approvals, kills and alerts: add, ls, rm; uses the admin key.',
    load: async () => (await import('./verbs/webhook.ts')).defineWebhook,
  },
  whoami: {
    about: 'Show the tenant, role and agents of your key.',
    load: async () => (await import('./verbs/whoami.ts')).defineWhoami,
  },
  events: {
    heading: 'Events and evidence:',
    about: 'Show the latest events, or follow them with -f; uses the admin key.',
    load: async () => (await import('./verbs/events.ts')).defineEvents,
  },
  audit: {
    about: 'Read and verify the evidence; uses the admin key.',
    load: async () => (await import('./verbs/audit.ts')).defineAudit,
  },
  doctor: {
    heading: 'The server on this machine:',
    about: 'Check whether this machine can isolate.',
    load: async () => (await import('./verbs/doctor.ts')).defineDoctor,
  },
  serve: {
    about: 'Run an Airlock server on this machine.',
    load: async () => (await import('./verbs/serve.ts')).defineServe,
  },
  service: {
    about: 'Run the server by systemd: install, uninstall, status.',
    load: async () => (await import('./verbs/service-unit.ts')).defineService,
  },
  uninstall: {
    about: 'Remove the link in /usr/local/bin that "npm start" made. Clone, state and evidence stay.',
    load: async () => (await import('./verbs/uninstall.ts')).defineUninstall,
  },
}

/** Runs the CLI and answers its exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const config = readConfig()
  const context = new Context(config, argv)
  const program = new Command('airlock')
    .description('Runs code that nobody trusts, in sandboxes without a network.')
    .version(config.version)
    .enablePositionalOptions()
    .exitOverride()
    .addHelpText('after', HELP)
  try {
    for (const [name, verb] of Object.entries(VERBS)) {
      if (verb.heading !== undefined) program.commandsGroup(verb.heading)
      const command = program.command(name).description(verb.about)
      if (verb.alias !== undefined) command.alias(verb.alias)
      if (isNamed(argv, name, verb.alias)) (await verb.load())(command, context)
    }
    throwOnUnknown(argv[0])
    await program.parseAsync(argv, { from: 'user' })
    await context.terminal.flush()
    return context.exitCode
  } catch (error) {
    const exitCode = reportFailure(context.terminal, error)
    // Whoever was told to stop waits for no reader.
    if (!(error instanceof Exit)) await context.terminal.flush()
    return exitCode
  }
}

/** Before commander, whose guesses know no words of other products. */
function throwOnUnknown(word: string | undefined): void {
  const names = Object.entries(VERBS).flatMap(([name, { alias }]) => (alias === undefined ? [name] : [name, alias]))
  if (word === undefined || word === '' || word.startsWith('-') || word === 'help' || names.includes(word)) return
  throw unknownVerb(word, names)
}

/** As the first word, or as the second of `airlock help <verb>`. */
function isNamed(argv: readonly string[], name: string, alias: string | undefined): boolean {
  return argv.slice(0, 2).some((word) => word === name || word === alias)
}

const HELP = `
Environment: AIRLOCK_URL and AIRLOCK_API_KEY name a server elsewhere; on the machine of the server neither is needed.
Exit codes: that of the command for run and exec; else 0, 1 for an error or code that failed, 2 for wrong usage, 3 when no server answers,
4 when it says no, 5 for what is not there, 6 for a conflict.`
