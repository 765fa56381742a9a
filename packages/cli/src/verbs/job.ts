import { DEFAULTS } from '@airlock/contract/defaults'
import { Airlock, type Job, type JobOptions, type JobState, type JobWork } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Context } from '../context.ts'
import { reportFailure } from '../failure.ts'
import { listPages } from '../list-pages.ts'
import { waitApprovalOption, waitingAirlock } from '../options/command-options.ts'
import { addLimitOptions, toLimits, type LimitOptions } from '../options/limit-options.ts'
import { followJob, printLog } from '../run/follow-job.ts'
import { readCodeFile } from '../run/read-code.ts'
import { runtimeOf } from '../run/run-file.ts'
import { collectPairs, collectWords } from '../text/pairs.ts'
import { renderFacts, renderTable, type Cell, type Row } from '../text/table.ts'
import { durationWithin, formatDuration, numberWithin } from '../text/units.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

const PAGE = 200
const STATES: readonly JobState[] = ['queued', 'running', 'succeeded', 'failed', 'canceled']

export function defineJob(job: Command, context: Context): void {
  addRun(job, context)
  addLs(job, context)
  addInspect(job, context)
  addLogs(job, context)
  addCancel(job, context)
}

interface RunOptions extends LimitOptions, JsonOption {
  readonly detach?: boolean
  readonly shell?: boolean
  readonly file?: readonly string[]
  readonly input?: Readonly<Record<string, string>>
  readonly artifact?: readonly string[]
  readonly template?: string
  readonly agent?: string
  readonly env?: Readonly<Record<string, string>>
  readonly label?: Readonly<Record<string, string>>
  readonly timeout?: number
  readonly queue?: number
  readonly retries?: number
  readonly retryDelay?: number
  readonly key?: string
  readonly waitApproval?: number
}

function addRun(job: Command, context: Context): void {
  const verb = withJson(job.command('run').description('Queue a job, follow it, and exit with its exit code.'))
    .usage('[options] <file or program> [arguments...]')
    .argument('<command...>', 'a file .py, .mjs or .sh of this machine, or a program of the sandbox; and arguments')
    .passThroughOptions()
    .option('-d, --detach', 'print its id and leave it')
    .option('--shell', 'join the words and give them to /bin/sh')
    .option('--file <path>', 'a file to copy into /workspace; may be given several times', collectWords)
    .option('--input <path=artifact>', 'an artifact to have at this path; may be given several times', collectPairs)
    .option('--artifact <pattern>', 'files to keep when it ends; may be given several times', collectWords)
    .option('--template <template>', 'what its sandbox starts from (default: base)')
    .option('--agent <agent>', 'who it runs for (default: the agent of your key)')
    .option('--env <key=value>', 'an environment variable; may be given several times', collectPairs)
    .option('--label <key=value>', 'a label; may be given several times', collectPairs)
    .option(
      '--timeout <duration>',
      `of one try (default: ${formatDuration(DEFAULTS.jobTimeoutMs.default)})`,
      durationWithin(DEFAULTS.jobTimeoutMs),
    )
    .option(
      '--queue <duration>',
      `how long it may wait to begin (default: ${formatDuration(DEFAULTS.jobQueueMs.default)})`,
      durationWithin(DEFAULTS.jobQueueMs),
    )
    .option('--retries <number>', 'further tries after one that failed (default: 0)', numberWithin(DEFAULTS.jobRetries))
    .option(
      '--retry-delay <duration>',
      'before the second try; doubled after that',
      durationWithin(DEFAULTS.jobRetryDelayMs),
    )
    .option('--key <key>', 'an idempotency key: the same key again answers the first job')
    .addOption(waitApprovalOption())
  addLimitOptions(verb.optionsGroup('Its limits:'), 'with defaults')
    .optionsGroup('Options:')
    .action(async (words: readonly string[], options: RunOptions) => {
      const { terminal } = context
      const submitted = await waitingAirlock(options).jobs.submit(await toWork(words, options), toJobOptions(options))
      if (options.detach !== true) context.exitCode = await followJob(terminal, submitted, options.json === true)
      else await (options.json === true ? terminal.printJson(submitted.data) : terminal.print(submitted.id))
    })
}

/** A file of this machine is sent along as code; what follows `--` and all else is a program of the sandbox. */
async function toWork(words: readonly string[], options: RunOptions): Promise<JobWork> {
  if (options.shell === true) return { shell: words.join(' ') }
  const [path = '', ...args] = words
  const language = runtimeOf(path)
  if (language === undefined) return words
  if (args.length > 0)
    throw new UsageError(
      'Code of a job has no arguments.',
      `Give the file along and call its interpreter: airlock job run --file ${path} -- python3 ${basename(path)} …`,
    )
  return { code: await readCodeFile(path), language }
}

function toJobOptions(options: RunOptions): JobOptions {
  const limits = toLimits(options)
  return {
    template: options.template,
    agent: options.agent,
    env: options.env,
    labels: options.label,
    limits: Object.keys(limits).length > 0 ? limits : undefined,
    files: (options.file ?? []).map((path) => ({ path: basename(path), content: readFileSync(path) })),
    inputs: Object.entries(options.input ?? {}).map(([path, artifact]) => ({ path, artifact })),
    artifacts: options.artifact,
    timeoutMs: options.timeout,
    queueMs: options.queue,
    retries: options.retries,
    retryDelayMs: options.retryDelay,
    idempotencyKey: options.key,
  }
}

interface LsOptions extends JsonOption {
  readonly state?: JobState
  readonly agent?: string
}

function addLs(job: Command, context: Context): void {
  withJson(job.command('ls').description('List jobs, newest first.'))
    .addOption(new Option('--state <state>', 'only those').choices(STATES))
    .option('--agent <agent>', 'only those of this agent')
    .action(async (options: LsOptions) => {
      const { terminal } = context
      const { state, agent } = options
      const { jobs } = new Airlock()
      const found = await listPages(async (cursor) => jobs.list({ state, agent, limit: PAGE, cursor }))
      if (options.json === true) return terminal.printJson(found.map(({ data }) => data))
      if (found.length === 0) return terminal.note('There are no jobs. Queue one with "airlock job run".')
      await terminal.print(
        renderTable(terminal, ['ID', 'STATE', 'AGENT', 'TRIES', 'AGE', 'COMMAND'], found.map(jobRow)),
      )
    })
}

function jobRow({ data }: Job): Row {
  const age = formatDuration(Date.now() - Date.parse(data.createdAt))
  const line = data.argv.join(' ')
  return [data.id, stateCell(data), data.agent, `${data.tries}/${data.retries + 1}`, age, line.slice(0, 60)]
}

function stateCell({ state, error, exitCode }: Job['data']): Cell {
  const why = error?.code ?? (exitCode !== null && exitCode !== 0 ? `exit ${exitCode}` : undefined)
  const style = state === 'succeeded' ? 'green' : state === 'failed' ? 'red' : 'dim'
  return { text: why === undefined ? state : `${state} (${why})`, style }
}

function addInspect(job: Command, context: Context): void {
  withJson(job.command('inspect').description('Look at one job and its result.'))
    .argument('<job>', 'its id')
    .action(async (id: string, options: JsonOption) => {
      const { terminal } = context
      const { data } = await new Airlock().jobs.get(id)
      await (options.json === true ? terminal.printJson(data) : terminal.print(renderFacts(terminal, factsOf(data))))
    })
}

type Facts = readonly (readonly [string, string | Cell])[]

function factsOf(data: Job['data']): Facts {
  const labels = Object.entries(data.labels).map(([key, value]) => `${key}=${value}`)
  return [
    ['id', data.id],
    ['state', stateCell(data)],
    ['command', data.argv.join(' ')],
    ['sha256', data.sha256],
    ['agent', `${data.agent} of ${data.tenant}`],
    ['labels', labels.join(', ') || '-'],
    ['tries', `${data.tries} of ${data.retries + 1}`],
    ['created', data.createdAt],
    ...resultFacts(data),
  ]
}

function resultFacts({ exitCode, error, cause, resourceUsage, provenance, ...data }: Job['data']): Facts {
  const cpuMs = resourceUsage?.cpuMs
  const facts: readonly (readonly [string, string | number | null | undefined])[] = [
    ['exit code', exitCode],
    ['why', error?.message ?? cause],
    ['processor time', typeof cpuMs === 'number' ? `${Math.round(cpuMs)}ms` : null],
    ['image', provenance?.image],
    ['policy', provenance?.policyVersion],
    ['sandbox', data.sandbox],
    ['started', data.startedAt],
    ['ended', data.endedAt],
  ]
  return facts.map(([name, value]) => [name, String(value ?? '-')])
}

interface LogsOptions extends JsonOption {
  readonly follow?: boolean
}

function addLogs(job: Command, context: Context): void {
  withJson(job.command('logs').description('Print what a job said, over all its tries.'))
    .argument('<job>', 'its id')
    .option('-f, --follow', 'go on until it ends; with --json, one event a line')
    .action(async (id: string, options: LogsOptions) => {
      const found = await new Airlock().jobs.get(id)
      await printLog(context.terminal, found, { follow: options.follow === true, json: options.json === true })
    })
}

function addCancel(job: Command, context: Context): void {
  withJson(job.command('cancel').description('Cancel jobs. One that has ended stays as it is.'))
    .argument('<job...>', 'their ids')
    .action(async (ids: readonly string[], options: JsonOption) => {
      const { terminal } = context
      const { jobs } = new Airlock()
      const canceled: Job['data'][] = []
      for (const id of ids) {
        try {
          canceled.push((await (await jobs.get(id)).cancel()).data)
          if (options.json !== true) await terminal.print(id)
        } catch (error) {
          // The others are canceled all the same.
          context.exitCode = reportFailure(terminal, error)
        }
      }
      if (options.json === true) await terminal.printJson(canceled)
    })
}
