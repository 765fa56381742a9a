import { type AirlockError, type Run, type RunEvent, runError } from '@airlock/sdk'
import { Exit } from '../failure.ts'
import type { Terminal } from '../text/terminal.ts'
import { OutputPrinter } from './attach.ts'
import { Interrupts } from './interrupts.ts'

/** Prints the answer of a run as it comes, and throws why there is none. Ctrl-C cancels the run; a second one leaves it. */
export async function followRun(terminal: Terminal, run: Run, json: boolean): Promise<void> {
  using interrupts = new Interrupts()
  interrupts.onAsked(() => {
    terminal.note(`airlock: canceling ${run.id}; press Ctrl-C again to leave it`)
    run.cancel().catch((error: unknown) => terminal.note(`airlock: could not cancel the run: ${String(error)}`))
  })
  try {
    await printRun(terminal, run.events({ signal: interrupts.stopped }), json)
  } catch (error) {
    throw interrupts.stopped.aborted ? new Exit(interrupts.exitCode) : error
  }
}

/** Deltas go to stdout and all else to stderr; with `json` each event is a line of stdout. */
export async function printRun(terminal: Terminal, events: AsyncIterable<RunEvent>, json: boolean): Promise<void> {
  const printer = new OutputPrinter(terminal)
  let failure: AirlockError | undefined
  let text = ''
  for await (const event of events) {
    if (event.event === 'error') failure = runError(event)
    if (json) {
      await terminal.printJson(event, 'line')
      continue
    }
    if (event.event === 'text_delta') {
      text += event.delta
      await printer.write('stdout', Buffer.from(event.delta))
    }
    if (event.event === 'done') {
      await printer.finish()
      if (text !== '' && !text.endsWith('\n')) await terminal.print('')
    }
    sayBeside(terminal, event)
  }
  if (failure) throw failure
}

/** What a person wants to know who waits for the answer. */
function sayBeside(terminal: Terminal, event: RunEvent): void {
  if (event.event === 'tool_call_start') terminal.note(`· ${event.toolName} ${shorten(JSON.stringify(event.args))}`)
  if (event.event === 'tool_call_result' && event.isError)
    terminal.note(`· failed: ${shorten(JSON.stringify(event.result))}`)
  if (event.event === 'done' && terminal.isWatched) terminal.note(costOf(event.run))
}

function costOf({ id, usage }: Extract<RunEvent, { event: 'done' }>['run']): string {
  const { calls, inputTokens, outputTokens, dollars } = usage
  return `${id}: ${calls} calls, ${inputTokens} tokens in, ${outputTokens} out, $${dollars}`
}

function shorten(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text
}
