import {
  AirlockError,
  command,
  runCommandBody,
  runStepBody,
  sandboxId,
  type Command,
  type EndCause,
} from '@airlock/contract'
import { z } from 'zod'
import { follow } from '../follow.ts'
import type { RouteRequest } from '../routes.ts'
import { textFields, TextOutput } from '../text-output.ts'
import { defineTool, text, type Tool, type ToolCall } from '../tool.ts'

const body = runCommandBody.shape

export const COMMAND_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'run_command',
    title: 'Run a command',
    description:
      'Run a program, or a line of shell, in a sandbox that is there, and answer its output when it has ended. A command that ' +
      'fails is a result, with its exit code.',
    routes: ['runCommand', 'signalCommand'],
    input: z.strictObject({
      sandbox: sandboxId,
      argv: body.argv,
      shell: body.shell,
      cwd: body.cwd,
      env: body.env,
      stdin: runStepBody.shape.stdin.describe('What the command reads.'),
      timeoutMs: body.timeoutMs,
      cpuTimeMs: body.cpuTimeMs,
    }),
    output: z.object({
      ...command.pick({
        id: true,
        sandbox: true,
        exitCode: true,
        signal: true,
        timedOut: true,
        cause: true,
        truncated: true,
        outputBytes: true,
        durationMs: true,
      }).shape,
      ...textFields,
    }),
    hints: { destructive: true },
    run: async ({ sandbox, stdin, ...rest }, call) => {
      const fed = stdin === '' ? {} : { stdin: { text: stdin } }
      const { ended, output } = await runCommand({ params: { id: sandbox }, body: { ...rest, ...fed } }, call)
      return { structured: { ...ended, ...output.fields() }, content: [...output.content(), text(describeEnd(ended))] }
    },
  }),
]

/** Runs it to its end; when the caller calls it off, its whole tree is killed. */
async function runCommand(
  request: RouteRequest<'runCommand'>,
  { routes, progress, signal }: ToolCall,
): Promise<{ readonly ended: Command; readonly output: TextOutput }> {
  const output = new TextOutput()
  const known: { started?: Command; ended?: Command } = {}
  progress.say('starting the command')
  await follow({
    signal,
    open: (listening) => routes.events('runCommand', request, listening),
    onEvent: (event) => {
      if (event.event === 'started') known.started = event.command
      else if (event.event === 'ended') known.ended = event.command
      else if (event.event === 'output') {
        output.push(event)
        progress.say(event.text ?? '')
      }
    },
    stop: async () => {
      if (!known.started) return
      const params = { id: request.params.id, command: known.started.id }
      await routes.call('signalCommand', { params, body: { signal: 'SIGKILL' } })
    },
  })
  if (!known.ended) throw new AirlockError('internal', 'The stream ended before the command.')
  return { ended: known.ended, output }
}

/** Where an exit code says little, and what would help. */
const CAUSES: Partial<Record<EndCause, string>> = {
  timeout: 'killed: it took too long; more time is timeoutMs',
  cpu_time: 'killed: it used up its processor time',
  out_of_memory: 'failed: out of memory; more is limits.memoryBytes of a new sandbox',
  pids_exhausted: 'failed: too many processes; more is limits.pids of a new sandbox',
  disk_full: 'failed: no space left; remove files, or more is limits.diskBytes of a new sandbox',
  forbidden_call: 'killed: it made a system call that no sandbox may make',
  killed_by_policy: 'killed: its sandbox was ended by an order or a rule',
  sandbox_ended: 'lost: its sandbox ended before it',
}

function describeEnd(ended: Command): string {
  const cut = ended.truncated ? ' Output past the limit was dropped.' : ''
  const why = ended.cause === null ? undefined : CAUSES[ended.cause]
  const code = ended.exitCode === null ? '' : ` (exit code ${ended.exitCode})`
  if (why !== undefined) return `[${why}${code}.${cut}]`
  if (ended.signal !== null) return `[ended by ${ended.signal}.${cut}]`
  if (ended.state === 'lost') return `[lost: nobody knows how it ended.${cut}]`
  return `[exit code ${ended.exitCode}.${cut}]`
}
