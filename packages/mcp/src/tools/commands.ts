import { AirlockError, command, runCommandBody, runStepBody, sandboxId, type Command } from '@airlock/contract'
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
    }),
    output: z.object({
      ...command.pick({
        id: true,
        sandbox: true,
        exitCode: true,
        signal: true,
        timedOut: true,
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

function describeEnd(ended: Command): string {
  const cut = ended.truncated ? ' Output past the limit was dropped.' : ''
  if (ended.timedOut) return `[killed: it took too long.${cut}]`
  if (ended.signal !== null) return `[ended by ${ended.signal}.${cut}]`
  if (ended.state === 'lost') return `[lost: nobody knows how it ended.${cut}]`
  return `[exit code ${ended.exitCode}.${cut}]`
}
