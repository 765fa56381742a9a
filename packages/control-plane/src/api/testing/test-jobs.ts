import { AirlockError, type Job, type JobEvent, runCommandBody, type SubmitJobBody } from '@airlock/contract'
import { newId } from '@airlock/std'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { memoryDir } from '../../../../../test/support/memory-dir.ts'
import type { Page } from '../../app/caller.ts'
import { argvOf, sha256Of } from '../../jobs/job-nouns.ts'
import { TestCommand } from './test-command.ts'

interface KnownJob {
  job: Job
  readonly command: TestCommand
  readonly over: Promise<void>
}

/** For tests only: jobs of `TestCore`, each a process of this user that begins at once. */
export class TestJobs {
  readonly #jobs = new Map<string, KnownJob>()
  readonly #home = mkdtemp(join(memoryDir(), 'airlock-test-jobs-'))

  async submit(body: SubmitJobBody): Promise<Job> {
    const home = await this.#home
    const code = { python: 'job.py', node: 'job.mjs', bash: 'job.sh' }[body.language ?? 'bash']
    if (body.code !== undefined) await writeFile(join(home, code), body.code)
    for (const { path, base64 } of body.files) await writeFile(join(home, path), Buffer.from(base64, 'base64'))
    const spec = runCommandBody.parse({ argv: argvOf(body), env: body.env, timeoutMs: body.timeoutMs })
    const command = await TestCommand.start(newId('sbx'), home, spec)
    const job = newJob(body, command)
    const known: KnownJob = { job, command, over: command.ended.then(() => end(known)) }
    this.#jobs.set(job.id, known)
    return job
  }

  async list(query: { readonly limit: number }): Promise<Page<Job>> {
    const items = [...this.#jobs.values()].map(({ job }) => job).toReversed()
    return { items: items.slice(0, query.limit), nextCursor: null }
  }

  async get(id: string): Promise<Job> {
    return this.#find(id).job
  }

  async cancel(id: string): Promise<Job> {
    const known = this.#find(id)
    if (known.command.kill('SIGKILL')) known.job = { ...known.job, cancelRequested: true }
    return known.job
  }

  async *events(
    id: string,
    options: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<JobEvent> {
    const known = this.#find(id)
    yield { event: 'started', job: known.job }
    for await (const event of known.command.events(options))
      if (event.event === 'output') yield { ...event, attempt: 1 }
    if (options.follow) await known.over
    if (known.job.endedAt !== null) yield { event: 'ended', job: known.job }
  }

  async dispose(): Promise<void> {
    for (const { command } of this.#jobs.values()) command.kill('SIGKILL')
    await rm(await this.#home, { recursive: true, force: true })
  }

  #find(id: string): KnownJob {
    const known = this.#jobs.get(id)
    if (!known) throw new AirlockError('job_not_found')
    return known
  }
}

function end(known: KnownJob): void {
  const { exitCode, outputBytes } = known.command.state
  const state = known.job.cancelRequested ? 'canceled' : exitCode === 0 ? 'succeeded' : 'failed'
  known.job = { ...known.job, state, exitCode, cause: 'exit', outputBytes, endedAt: new Date().toISOString() }
}

function newJob(body: SubmitJobBody, { state: command }: TestCommand): Job {
  const now = new Date().toISOString()
  return {
    id: newId('job'),
    tenant: 'default',
    agent: body.agent ?? 'default',
    state: 'running',
    argv: [...argvOf(body)],
    language: body.language ?? null,
    sha256: sha256Of(body),
    template: body.template,
    labels: body.labels,
    idempotencyKey: body.idempotencyKey ?? null,
    timeoutMs: body.timeoutMs,
    retries: body.retries,
    tries: 1,
    cancelRequested: false,
    node: 'local',
    sandbox: command.sandbox,
    command: command.id,
    exitCode: null,
    signal: null,
    cause: null,
    error: null,
    outputBytes: 0,
    truncated: false,
    artifacts: null,
    resourceUsage: null,
    provenance: null,
    createdAt: now,
    queueEndsAt: now,
    notBefore: now,
    startedAt: now,
    endedAt: null,
  }
}
