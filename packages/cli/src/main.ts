import { Command } from 'commander'
import { readConfig } from './config.ts'
import { Context } from './context.ts'
import { reportFailure } from './failure.ts'

interface Verb {
  readonly about: string
  readonly alias?: string
  readonly load: () => Promise<(command: Command, context: Context) => void>
}

/** Only the verb that is used is loaded: the others would cost every start. */
const VERBS: Readonly<Record<string, Verb>> = {
  run: {
    about: 'Run a command in a sandbox of its own, which is gone afterwards.',
    load: async () => (await import('./verbs/run.ts')).defineRun,
  },
  create: {
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
  inspect: {
    about: 'Show everything about a sandbox.',
    load: async () => (await import('./verbs/inspect.ts')).defineInspect,
  },
  extend: {
    about: 'Let a sandbox live longer, never past its maximum lifetime.',
    load: async () => (await import('./verbs/extend.ts')).defineExtend,
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
  logs: {
    about: 'Print the output of a command.',
    load: async () => (await import('./verbs/logs.ts')).defineLogs,
  },
  audit: {
    about: 'Read and verify the evidence; uses the admin key.',
    load: async () => (await import('./verbs/audit.ts')).defineAudit,
  },
  whoami: {
    about: 'Show who the server takes you for.',
    load: async () => (await import('./verbs/whoami.ts')).defineWhoami,
  },
  doctor: {
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
}

/** Runs the CLI and answers its exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const config = readConfig()
  const context = new Context(config)
  const program = new Command('airlock')
    .description('Runs code that nobody trusts, in sandboxes without a network.')
    .version(config.version)
    .enablePositionalOptions()
    .exitOverride()
    .addHelpText('after', HELP)
  try {
    for (const [name, verb] of Object.entries(VERBS)) {
      const command = program.command(name).description(verb.about)
      if (verb.alias !== undefined) command.alias(verb.alias)
      if (isNamed(argv, name, verb.alias)) (await verb.load())(command, context)
    }
    await program.parseAsync(argv, { from: 'user' })
    return context.exitCode
  } catch (error) {
    return reportFailure(context.terminal, error)
  }
}

/** As the first word, or as the second of `airlock help <verb>`. */
function isNamed(argv: readonly string[], name: string, alias: string | undefined): boolean {
  return argv.slice(0, 2).some((word) => word === name || word === alias)
}

const HELP = `
Environment: AIRLOCK_URL and AIRLOCK_API_KEY name a server elsewhere; on the machine of the server neither is needed.
Exit codes: that of the command for run and exec; else 0, 1 for an error, 2 for wrong usage, 3 when no server answers.`
