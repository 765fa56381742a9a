import { Airlock, type Job, type JobOptions, type JobWork } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

let server: BorrowedServer
let airlock: Airlock

beforeAll(async () => {
  server = await borrowServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  await admin.agents.register('narrow', { approve: true })
  await admin.budgets.setAgent('narrow', { sandboxes: 1 })
})
afterAll(async () => server?.giveBack())

/** Its agent may have one sandbox at once. */
const narrow = { agent: 'narrow' }

const run = async (work: JobWork, options?: JobOptions) => (await airlock.jobs.submit(work, options)).wait()

describe('a job', () => {
  it('runs in a sandbox of its own, and keeps its log and its result when that is gone', async () => {
    const { job, stdout, stderr } = await run({ shell: 'echo out; echo err >&2; exit 3' }, { labels: { team: 'red' } })
    expect([stdout, stderr]).toEqual(['out\n', 'err\n'])
    expect(job).toMatchObject({
      state: 'failed',
      exitCode: 3,
      cause: 'exit',
      error: null,
      tries: 1,
      labels: { team: 'red' },
      outputBytes: 8,
      truncated: false,
      provenance: { template: 'base', tier: 'standard', policyVersion: expect.stringMatching(/^builtin@\d+$/) },
    })
    expect(job.resourceUsage?.cpuMs).toBeGreaterThan(0)
    expect((await airlock.sandboxes.get(job.sandbox ?? '')).data).toMatchObject({ state: 'stopped' })
    expect((await airlock.jobs.get(job.id)).data).toEqual(job)
  })

  it('runs code with the files, the environment and the limits that it was given', async () => {
    const code = 'import os\nprint(open("in/data.txt").read(), os.environ["WHO"], os.getcwd())'
    const files = [{ path: 'in/data.txt', content: 'given' }]
    const { job, stdout } = await run({ code, language: 'python' }, { files, env: { WHO: 'me' } })
    expect([job.state, stdout]).toEqual(['succeeded', 'given me /workspace\n'])
    const { stdout: fromNode } = await run({ code: 'console.log(await Promise.resolve(6 * 7))', language: 'node' })
    expect(fromNode).toBe('42\n')
  })

  it('says why it failed: a timeout, a program that is not there', async () => {
    const late = await run(['sleep', '60'], { timeoutMs: 500 })
    expect(late.job).toMatchObject({ state: 'failed', cause: 'timeout' })
    const absent = await run(['no-such-program'])
    expect(absent.job).toMatchObject({ state: 'failed', error: { code: 'executable_not_found' }, exitCode: null })
  })

  it('is tried again only where that was asked for, with one log over all tries', async () => {
    const { job, stdout } = await run({ shell: 'echo tried; exit 1' }, { retries: 2, retryDelayMs: 1 })
    expect([job.state, job.tries, stdout]).toEqual(['failed', 3, 'tried\ntried\ntried\n'])
  })

  it('is submitted once for one idempotency key, and another request under it is refused', async () => {
    const submit = async (word: string) => airlock.jobs.submit(['echo', word], { idempotencyKey: 'once' })
    const jobs = await Promise.all(Array.from({ length: 5 }, async () => submit('a')))
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(1)
    await expect(submit('b')).rejects.toMatchObject({ code: 'job_mismatch' })
    expect((await (await submit('a')).wait()).stdout).toBe('a\n')
  })

  it('is followed from any byte on', async () => {
    const job = await airlock.jobs.submit({ shell: 'for i in 1 2 3; do echo $i; sleep 0.1; done' })
    const text = async (from: number) => {
      let said = ''
      for await (const event of job.events({ from })) if (event.event === 'output') said += event.text ?? ''
      return said
    }
    expect([await text(0), await text(3), await text(6)]).toEqual(['1\n2\n3\n', '\n3\n', ''])
  })
})

describe('cancel', () => {
  it('ends a job that runs, with its sandbox', async () => {
    const job = await airlock.jobs.submit({ shell: 'echo began; sleep 600' })
    for await (const event of job.events()) if (event.event === 'output') break
    await job.cancel()
    const { job: ended, stdout } = await job.wait()
    expect([ended.state, ended.cancelRequested, stdout]).toEqual(['canceled', true, 'began\n'])
    expect(server.processesOf(ended.sandbox ?? '')).toEqual([])
    expect((await job.cancel()).data).toEqual(ended)
  })

  it('ends a job that waits before anything begins', async () => {
    const busy = await holdAgent()
    const job = await airlock.jobs.submit(['echo', 'never'], narrow)
    expect((await job.cancel()).data).toMatchObject({ state: 'canceled', tries: 0, sandbox: null })
    await (await busy.cancel()).wait()
  })
})

describe('a burst', () => {
  it('waits for room instead of being refused, and is served first come, first served', async () => {
    const jobs: Job[] = []
    for (let n = 0; n < 6; n++) jobs.push(await airlock.jobs.submit(['echo', String(n)], narrow))
    const ended = await Promise.all(jobs.map(async (job) => job.wait()))
    expect(ended.map(({ job, stdout }) => [job.state, job.tries, stdout])).toEqual(
      jobs.map((_, n) => ['succeeded', 1, `${n}\n`]),
    )
  })

  it('that waited too long fails with that reason', async () => {
    const busy = await holdAgent()
    const { job } = await run(['true'], { ...narrow, queueMs: 1000 })
    expect(job).toMatchObject({ state: 'failed', tries: 0, error: { code: 'queue_timeout' } })
    await (await busy.cancel()).wait()
  })
})

describe('the right to begin', () => {
  it('is looked at again when it begins: a revoked key starts nothing', async () => {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const { key, secret } = await admin.keys.create({ name: 'leaver', role: 'developer' })
    const busy = await holdAgent()
    const job = await new Airlock({ url: server.url, apiKey: secret }).jobs.submit(['echo', 'never'], narrow)
    await admin.keys.revoke(key.id)
    await busy.cancel()
    const { job: ended } = await (await airlock.jobs.get(job.id)).wait()
    expect(ended).toMatchObject({ state: 'failed', error: { code: 'key_ended' }, sandbox: null })
  })

  it('is denied by a policy that came after the submission', async () => {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const busy = await holdAgent()
    const job = await airlock.jobs.submit(['echo', 'never'], narrow)
    const rule = { id: 'none', kind: 'operation', effect: 'deny', risk: 'low', reason: 'No more.' } as const
    await admin.policies.put({ name: 'no-starts', rules: [{ ...rule, match: { points: ['job.start'] } }] })
    await busy.cancel()
    expect((await job.wait()).job).toMatchObject({ state: 'failed', error: { code: 'policy_denied' }, sandbox: null })
    await admin.policies.remove('no-starts')
  })

  it('is denied at submission where a policy denies the command already', async () => {
    await expect(airlock.jobs.submit(['mount', '/dev/sda', '/mnt'])).rejects.toMatchObject({ code: 'policy_denied' })
  })
})

/** A job that holds the only sandbox of its agent. */
async function holdAgent(): Promise<Job> {
  const job = await airlock.jobs.submit({ shell: 'echo began; sleep 600' }, narrow)
  for await (const event of job.events()) if (event.event === 'output') break
  return job
}
