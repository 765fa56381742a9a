import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FailpointName, Session, StepResult } from '@airlock/contract'
import { Airlock, AirlockError, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { expect } from 'vitest'
import { type Refusal, SessionsHttp } from '../sessions/http.ts'
import { FORKS } from '../support/forks.ts'
import type { TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

/** Of a directory that is granted for writing: anybody but root. */
const OWNER = 4242

/** What leads to a failpoint, and what must hold after somebody died there. */
interface Walk {
  begin(server: TestServer): Promise<void>
  expectSound(server: TestServer): Promise<void>
}

/** `name` is of this case alone. */
export function walkOf(failpoint: FailpointName, name: string): Walk {
  const begins = failpoint.split('.')[0] ?? ''
  return (WALKS[begins] ?? life)(name)
}

export function throwUnlessRetryable(error: unknown): undefined {
  if (error instanceof AirlockError && error.retryable) return undefined
  throw error
}

const WALKS: Readonly<Record<string, (name: string) => Walk>> = {
  step,
  job,
  artifact,
  pause,
  resume: pause,
  limit,
  kill,
}

/** One whole life; what dies under it may fail any step, with an error that says so. */
function life(name: string): Walk {
  return {
    begin: async (server) => {
      let sandbox: Sandbox | undefined
      const steps = [
        async () => (sandbox = await client(server).sandboxes.create({ name })),
        async () => sandbox?.run({ shell: 'echo one; sleep 0.2; echo two' }, { signal: AbortSignal.timeout(20_000) }),
        async () => sandbox?.terminate(),
      ]
      for (const take of steps) await take().catch(throwUnlessCut)
    },
    expectSound: async () => {},
  }
}

/** A change of limits. The row, the kernel and the budgets say the same, whichever of the two it is. */
function limit(name: string): Walk {
  const agree = async (airlock: Airlock) => {
    const { items } = await airlock.sandboxes.list({})
    const walker = items.find(({ data }) => data.name === name)
    const { stdout } = (await walker?.run(['python3', '-c', FORKS])) ?? { stdout: '' }
    const promised = items.reduce((sum, { data }) => sum + data.limits.memoryBytes, 0)
    const { reserved } = await airlock.budgets.ofAgent('default')
    const isSame = Number(stdout) === walker?.data.limits.pids && reserved.memoryBytes === promised
    return isSame ? true : undefined
  }
  return {
    begin: async (server) => {
      await switchShippedRulesOff(server)
      const sandbox = await client(server).sandboxes.create({ name, limits: { pids: 20 } })
      await sandbox.setLimits({ pids: 40, memoryBytes: 700 * 1024 * 1024 }).catch(throwUnlessCut)
    },
    expectSound: async (server) => {
      const airlock = client(server)
      await waitFor(() => agree(airlock).catch((error: unknown) => throwUnlessRetryable(error)), {
        signal: deadline(30_000),
        everyMs: 300,
      })
    },
  }
}

/**
 * A pause and what comes after it. The sandbox is active and can be used, or it is paused, cannot, and goes on when it is
 * resumed: never one and called the other.
 */
function pause(name: string): Walk {
  const isAsItSays = async (airlock: Airlock) => {
    const [walker] = (await airlock.sandboxes.list({ name })).items
    if (!walker) return 'gone'
    const used = await walker.run(['true']).then(
      () => 'active',
      (error: unknown) => (error instanceof AirlockError ? error.code : 'broken'),
    )
    if (used === 'active') return walker.data.state === 'active' ? 'as it says' : undefined
    if (used !== 'sandbox_paused') return undefined
    await walker.resume()
    return (await walker.run(['echo', 'on'])).stdout === 'on\n' ? 'as it says' : 'broken'
  }
  return {
    begin: async (server) => {
      const sandbox = await client(server).sandboxes.create({ name })
      await sandbox.pause().catch(throwUnlessCut)
      await sandbox.resume().catch(throwUnlessCut)
    },
    expectSound: async (server) => {
      const seen = await waitFor(() => isAsItSays(client(server)), { signal: deadline(30_000), everyMs: 200 })
      expect(seen).toBe('as it says')
    },
  }
}

/**
 * A job whose command leaves a line outside. It ends, whoever died: well, with one line, or with a reason, and then the line is there
 * at most once. Asking again with its key answers the same job.
 */
function job(agent: string): Walk {
  const place = mkdtempSync(join(tmpdir(), 'al-job-'))
  const submit = async (server: TestServer) => {
    const command = { shell: 'echo ran >> /grants/lines/ran; sleep 0.2; echo said' }
    return client(server).jobs.submit(command, { agent, idempotencyKey: agent })
  }
  return {
    begin: async (server) => {
      const admin = adminOf(server)
      chownSync(place, OWNER, OWNER)
      await admin.agents.register(agent, { approve: true })
      await admin.grants.add(agent, place, { mode: 'rw', target: '/grants/lines' })
      const begun = await submit(server).catch(throwUnlessCut)
      await begun?.wait(AbortSignal.timeout(20_000)).catch(throwUnlessCut)
    },
    expectSound: async (server) => {
      const again = () => submit(server).catch((error: unknown) => throwUnlessRetryable(error))
      const found = await waitFor(again, { signal: deadline(30_000), everyMs: 200 })
      const { job: ended, stdout } = await found.wait(AbortSignal.timeout(60_000))
      const left = readFileSync(join(place, 'ran'), { encoding: 'utf8', flag: 'a+' })
      if (ended.state === 'succeeded') expect([left, stdout, ended.tries]).toEqual(['ran\n', 'said\n', 1])
      else {
        expect([ended.state, ended.error !== null || ended.cause !== null]).toEqual(['failed', true])
        expect(['', 'ran\n']).toContain(left)
      }
      rmSync(place, { recursive: true })
    },
  }
}

/**
 * A job that leaves a file, and an upload that is removed. The job ends once, with its artifact whole or the reason why not; what is
 * listed can be read, and the bytes of all else go.
 */
function artifact(key: string): Walk {
  const submit = async (server: TestServer) =>
    client(server).jobs.submit({ shell: `echo ${key} > left` }, { artifacts: ['left'], idempotencyKey: key })
  return {
    begin: async (server) => {
      const { artifacts } = client(server)
      const uploaded = await artifacts.upload(`${key}-removed`, key).catch(throwUnlessCut)
      if (uploaded) await artifacts.remove(uploaded.id).catch(throwUnlessCut)
      const begun = await submit(server).catch(throwUnlessCut)
      await begun?.wait(AbortSignal.timeout(20_000)).catch(throwUnlessCut)
    },
    expectSound: async (server) => {
      const again = () => submit(server).catch((error: unknown) => throwUnlessRetryable(error))
      const found = await waitFor(again, { signal: deadline(30_000), everyMs: 200 })
      const { job: ended } = await found.wait(AbortSignal.timeout(90_000))
      const { artifacts } = client(server)
      const { items } = await artifacts.list({ job: ended.id })
      if (ended.artifacts?.error === null) expect(items.map(({ name }) => name)).toEqual(['left'])
      for (const { id } of items)
        expect(Buffer.concat(await Array.fromAsync(artifacts.download(id))).toString()).toBe(`${key}\n`)
      await waitFor(async () => (await bytesWithoutRow(server)).length === 0 || undefined, {
        signal: deadline(60_000),
        everyMs: 300,
      })
    },
  }
}

/** What the data plane keeps under ids that the API does not list. */
async function bytesWithoutRow(server: TestServer): Promise<readonly string[]> {
  const named = join(server.home, 'data-plane', 'artifacts', 'named', 'default')
  const listed = new Set<string>()
  let cursor: string | null | undefined
  do {
    const page = await client(server).artifacts.list({ limit: 200, cursor: cursor ?? undefined })
    for (const { id } of page.items) listed.add(id)
    cursor = page.nextCursor
  } while (cursor !== null)
  return (existsSync(named) ? readdirSync(named) : []).filter((id) => !listed.has(id))
}

/** A kill of an agent with a sandbox. What was in scope is dead and stays dead, and the killswitch is on. */
function kill(agent: string): Walk {
  return {
    begin: async (server) => {
      const admin = adminOf(server)
      await admin.agents.register(agent, { approve: true })
      const sandbox = await admin.sandboxes.create({ agent, name: agent })
      await sandbox.start({ shell: 'trap "" TERM; while :; do :; done' })
      await admin.killswitch.on({ scope: 'agent', target: agent }, AbortSignal.timeout(60_000)).catch(throwUnlessCut)
    },
    expectSound: async (server) => {
      const admin = adminOf(server)
      const living = async () => {
        const { items } = await admin.sandboxes.list({ agent })
        return items.length === 0 ? true : undefined
      }
      await waitFor(living, { signal: deadline(60_000), everyMs: 100 })
      await expect(admin.sandboxes.create({ agent })).rejects.toMatchObject({ code: 'killed' })
      const [ended] = (await admin.sandboxes.list({ agent, state: 'all' })).items
      expect(ended?.data).toMatchObject({ state: 'stopped', endReason: 'killed' })
      expect(server.processesOf(ended?.id ?? '')).toEqual([])
      const kills = await admin.killswitch.list()
      expect(kills.filter(({ target }) => target === agent)).toMatchObject([{ scope: 'agent', unverified: [] }])
    },
  }
}

const STEP = { stepId: 'once', code: 'x=$((x + 1)); echo ran >> /workspace/ran; cat /workspace/ran' }

/**
 * A session and a step in it. The step has one outcome, its own or that nobody knows it; it never runs twice, and its
 * session lives on.
 */
function step(name: string): Walk {
  return {
    begin: async (server) => {
      const { id: sandbox } = await client(server).sandboxes.create({ name })
      const http = new SessionsHttp(server)
      const { id } = await http.open({ runtime: 'bash', sandbox })
      // A connection that breaks is what this is about; what became of the step is asked after the restart.
      await http.send('POST', `/v1/sessions/${id}/steps`, STEP).catch(() => undefined)
    },
    expectSound: async (server) => expectOnce(new SessionsHttp(server)),
  }
}

async function expectOnce(http: SessionsHttp): Promise<void> {
  const page = await http.send<{ readonly items: readonly Session[] }>('GET', '/v1/sessions')
  expect(page.body.items.map(({ state }) => state)).toEqual(['active'])
  const path = `/v1/sessions/${page.body.items[0]?.id}/steps`
  const ask = (body: object) =>
    waitFor(
      async () => {
        const answer = await http.send<StepResult & Refusal>('POST', path, body).catch(() => undefined)
        return answer?.status === 200 ? answer.body : undefined
      },
      { signal: deadline(30_000), everyMs: 100 },
    )
  const { status, error, stdout } = await ask(STEP)
  expect(await ask(STEP)).toMatchObject({ status, error, stdout })
  const isKnown = status === 'completed'
  if (isKnown) expect(stdout).toBe('ran\n')
  else expect(error).toMatchObject({ name: 'OutcomeUnknown' })
  const { stdout: after } = await ask({ code: 'echo $((x + 0)) $(cat /workspace/ran 2>/dev/null | wc -l)' })
  // The interpreter and the disk agree on how often it ran.
  expect(isKnown ? ['1 1\n'] : ['0 0\n', '1 1\n']).toContain(after)
}

/** What dies under a request may fail it, with an error that says so. */
function throwUnlessCut(error: unknown): void {
  if (!(error instanceof AirlockError) && !(error instanceof DOMException)) throw error
}

function client(server: TestServer): Airlock {
  return new Airlock({ url: server.url, apiKey: server.developerKey })
}

function adminOf(server: TestServer): Airlock {
  return new Airlock({ url: server.url, apiKey: server.adminKey })
}
