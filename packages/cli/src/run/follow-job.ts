import { AirlockError, type Job, type JobEvent, outputBytes } from '@airlock/sdk'
import { constants } from 'node:os'
import { Exit } from '../failure.ts'
import { endSentence } from '../text/end-sentence.ts'
import type { Terminal } from '../text/terminal.ts'
import { OutputPrinter } from './attach.ts'
import { tellCollected } from './keep-artifacts.ts'
import { Interrupts } from './interrupts.ts'

/** Prints what a job says until it has ended, and answers the exit code of ours. Ctrl-C cancels it; a second one leaves it. */
export async function followJob(terminal: Terminal, job: Job, json: boolean): Promise<number> {
  using interrupts = new Interrupts()
  interrupts.onAsked(() => {
    terminal.note(`airlock: canceling ${job.id}; press Ctrl-C again to leave it`)
    job.cancel().catch((error: unknown) => terminal.note(`airlock: could not cancel the job: ${String(error)}`))
  })
  try {
    const log = json ? await job.wait(interrupts.stopped) : undefined
    if (log) await terminal.printJson({ ...log.job, stdout: log.stdout, stderr: log.stderr })
    else await printEvents(terminal, job.events({ signal: interrupts.stopped }))
  } catch (error) {
    throw interrupts.stopped.aborted ? new Exit(interrupts.exitCode) : error
  }
  if (!json) sayWhy(terminal, job.data)
  const code = exitCodeOf(job.data)
  return code === 0 && !tellArtifacts(terminal, job.data, json) ? 1 : code
}

export async function printLog(
  terminal: Terminal,
  job: Job,
  { follow, json }: { readonly follow: boolean; readonly json: boolean },
): Promise<void> {
  if (json && !follow) return terminal.printJson(await job.log())
  if (json) for await (const event of job) await terminal.printJson(event, 'line')
  else if (follow) await printEvents(terminal, job.events())
  else {
    const { stdout, stderr } = await job.log()
    const printer = new OutputPrinter(terminal)
    await printer.write('stdout', Buffer.from(stdout))
    await printer.write('stderr', Buffer.from(stderr))
    await printer.finish()
  }
}

async function printEvents(terminal: Terminal, events: AsyncIterable<JobEvent>): Promise<void> {
  const printer = new OutputPrinter(terminal)
  for await (const event of events) if (event.event === 'output') await printer.write(event.stream, outputBytes(event))
  await printer.finish()
}

/** False when artifacts were asked for and there is something missing. */
function tellArtifacts(terminal: Terminal, { artifacts }: Job['data'], json: boolean): boolean {
  if (artifacts === null) return true
  if (artifacts.error !== null)
    terminal.note(`airlock: could not keep all artifacts: ${artifacts.error.message} (${artifacts.error.code})`)
  const isSome = json ? artifacts.count > 0 : tellCollected(terminal, artifacts)
  return isSome && artifacts.error === null
}

/** One sentence where the exit code does not say it. */
function sayWhy(terminal: Terminal, { id, state, error, cause, signal, truncated }: Job['data']): void {
  if (truncated) terminal.note('airlock: a part of its output is not in the log.')
  if (state === 'canceled') terminal.note(`airlock: ${id} was canceled.`)
  else if (error) terminal.note(`airlock: ${id} failed: ${error.message} (${error.code})`)
  else {
    const why = endSentence({ cause, signal })
    if (why !== undefined) terminal.note(`airlock: ${why}`)
  }
}

/** That of its command; else as a shell has it for a signal; else 1. */
function exitCodeOf({ state, exitCode, signal }: Job['data']): number {
  if (state === 'succeeded') return 0
  if (exitCode !== null) return exitCode === 0 ? 1 : exitCode
  const numbers: Readonly<Record<string, number>> = constants.signals
  if (signal !== null && numbers[signal] !== undefined) return 128 + numbers[signal]
  if (state === 'queued' || state === 'running')
    throw new AirlockError('server_unreachable', 'The stream ended before the job.')
  return 1
}
