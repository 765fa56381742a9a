import type { FailpointName, ProcessName } from '@airlock/contract'
import { Airlock, AirlockError, type Sandbox } from '@airlock/sdk'
import { verifyExport } from '@airlock/audit'
import { deadline, waitFor } from '@airlock/std'
import type { Session, StepResult } from '@airlock/contract'
import { expect } from 'vitest'
import { type Refusal, SessionsHttp } from '../sessions/http.ts'
import { linesOf } from '../support/lines.ts'
import { FORKS } from '../support/forks.ts'
import { leftovers, startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

/**
 * Kills `victim` with SIGKILL when the running product reaches `failpoint`, then looks at what is left: a bystander
 * sandbox must live on with its processes, nothing may be in limbo, and the evidence must verify.
 */
export async function crash(failpoint: FailpointName, victim: ProcessName): Promise<void> {
  const first = await startServer()
  const { home } = first
  const bystander = await startBystander(client(first))
  await first.stop('SIGTERM')

  let server = await startServer({ home, failpoint: `${failpoint}:${victim}`, tolerateDeath: true })
  try {
    await WALKS[kindOf(failpoint)](server)
    expect(await server.diedAtFailpoint(), `${failpoint} never fired`).toBe(true)
    if (!server.isRunning()) server = await startServer({ home })
    const airlock = client(server)
    await settled(airlock)
    await expectAlive(airlock, bystander)
    if (kindOf(failpoint) === 'step') await expectOnce(new SessionsHttp(server))
    if (kindOf(failpoint) === 'pause') await expectAsItSays(airlock)
    if (kindOf(failpoint) === 'kill') await expectDead(server)
    if (kindOf(failpoint) === 'limit') await expectHeldToLimits(airlock)
    await expectVerifies(server)
    const living = await livingIds(airlock)
    for (const found of await leftovers(home))
      expect(
        living.some((id) => found.includes(id)),
        `left behind: ${found}`,
      ).toBe(true)
    for (const id of living) await (await airlock.sandboxes.get(id)).terminate()
    expect((await leftovers(home)).filter((found) => !found.startsWith('process'))).toEqual([])
  } finally {
    await server.stop('SIGINT')
  }
}

interface Bystander {
  readonly id: string
  readonly pid: string
}

async function startBystander(airlock: Airlock): Promise<Bystander> {
  const sandbox = await airlock.sandboxes.create({ name: 'bystander' })
  const started = await sandbox.run({ shell: 'sleep 3600 >/dev/null 2>&1 & echo $! | tee /workspace/pid' })
  return { id: sandbox.id, pid: started.stdout.trim() }
}

async function expectAlive(airlock: Airlock, bystander: Bystander): Promise<void> {
  const sandbox = await airlock.sandboxes.get(bystander.id)
  expect(sandbox.data.state).toBe('active')
  const line = `cat /workspace/pid; kill -0 ${bystander.pid} && echo lives`
  // Its data plane may be on its way back: that is told as an error that is worth another try.
  const seen = await waitFor(
    () => sandbox.run({ shell: line }).catch((error: unknown) => throwUnlessRetryable(error)),
    { signal: deadline(30_000), everyMs: 100 },
  )
  expect(seen.stdout).toBe(`${bystander.pid}\nlives\n`)
}

function throwUnlessRetryable(error: unknown): undefined {
  if (error instanceof AirlockError && error.retryable) return undefined
  throw error
}

/** One whole life; what dies under it may fail any step, with an error that says so. */
async function walk(server: TestServer): Promise<void> {
  const airlock = client(server)
  let sandbox: Sandbox | undefined
  const steps = [
    async () => (sandbox = await airlock.sandboxes.create({ name: 'walker' })),
    async () => sandbox?.run({ shell: 'echo one; sleep 0.2; echo two' }, { signal: AbortSignal.timeout(20_000) }),
    async () => sandbox?.terminate(),
  ]
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      if (!(error instanceof AirlockError) && !(error instanceof DOMException)) throw error
    }
  }
}

type Kind = 'life' | 'step' | 'pause' | 'kill' | 'limit'

function kindOf(failpoint: FailpointName): Kind {
  if (failpoint.startsWith('step.')) return 'step'
  if (failpoint.startsWith('pause.') || failpoint.startsWith('resume.')) return 'pause'
  if (failpoint.startsWith('limit.')) return 'limit'
  return failpoint.startsWith('kill.') ? 'kill' : 'life'
}

const WALKS: Readonly<Record<Kind, (server: TestServer) => Promise<void>>> = {
  life: walk,
  step: walkToStep,
  pause: walkToPause,
  kill: walkToKill,
  limit: walkToLimit,
}

/** A change of limits; what dies under it may fail the request. */
async function walkToLimit(server: TestServer): Promise<void> {
  await switchShippedRulesOff(server)
  const sandbox = await client(server).sandboxes.create({ name: 'walker', limits: { pids: 20 } })
  await sandbox.setLimits({ pids: 40, memoryBytes: 700 * 1024 * 1024 }).catch((error: unknown) => {
    if (!(error instanceof AirlockError)) throw error
  })
}

/** The row, the kernel and the budgets say the same, whichever of the two it is. */
async function expectHeldToLimits(airlock: Airlock): Promise<void> {
  const agree = async () => {
    const { items } = await airlock.sandboxes.list({})
    const walker = items.find(({ data }) => data.name === 'walker')
    const { stdout } = (await walker?.run(['python3', '-c', FORKS])) ?? { stdout: '' }
    const promised = items.reduce((sum, { data }) => sum + data.limits.memoryBytes, 0)
    const { reserved } = await airlock.budgets.ofAgent('default')
    const isSame = Number(stdout) === walker?.data.limits.pids && reserved.memoryBytes === promised
    return isSame ? true : undefined
  }
  await waitFor(() => agree().catch((error: unknown) => throwUnlessRetryable(error)), {
    signal: deadline(30_000),
    everyMs: 300,
  })
}

/** A pause and what comes after it; what dies under it may fail either. */
async function walkToPause(server: TestServer): Promise<void> {
  const sandbox = await client(server).sandboxes.create({ name: 'walker' })
  await sandbox.pause().catch(() => undefined)
  await sandbox.resume().catch(() => undefined)
}

/** It is active and can be used, or it is paused, cannot, and goes on when it is resumed: never one and called the other. */
async function expectAsItSays(airlock: Airlock): Promise<void> {
  const seen = await waitFor(
    async () => {
      const [walker] = (await airlock.sandboxes.list({ name: 'walker' })).items
      if (!walker) return 'gone'
      const used = await walker.run(['true']).then(
        () => 'active',
        (error: unknown) => (error instanceof AirlockError ? error.code : 'broken'),
      )
      if (used === 'active') return walker.data.state === 'active' ? 'as it says' : undefined
      if (used !== 'sandbox_paused') return undefined
      await walker.resume()
      return (await walker.run(['echo', 'on'])).stdout === 'on\n' ? 'as it says' : 'broken'
    },
    { signal: deadline(30_000), everyMs: 200 },
  )
  expect(seen).toBe('as it says')
}

const DOOMED = 'doomed'

/** A kill of an agent with a sandbox; what dies under it may fail the request, and not the kill. */
async function walkToKill(server: TestServer): Promise<void> {
  const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  await admin.agents.register(DOOMED, { approve: true })
  const sandbox = await admin.sandboxes.create({ agent: DOOMED, name: 'walker' })
  await sandbox.start({ shell: 'trap "" TERM; while :; do :; done' })
  await admin.killswitch.on({ scope: 'agent', target: DOOMED }, AbortSignal.timeout(60_000)).catch((error: unknown) => {
    if (!(error instanceof AirlockError) && !(error instanceof DOMException)) throw error
  })
}

/** What was in scope is dead and stays dead, and the killswitch is on. */
async function expectDead(server: TestServer): Promise<void> {
  const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  const living = async () => {
    const { items } = await admin.sandboxes.list({ agent: DOOMED })
    return items.length === 0 ? true : undefined
  }
  await waitFor(living, { signal: deadline(60_000), everyMs: 100 })
  await expect(admin.sandboxes.create({ agent: DOOMED })).rejects.toMatchObject({ code: 'killed' })
  const [ended] = (await admin.sandboxes.list({ agent: DOOMED, state: 'all' })).items
  expect(ended?.data).toMatchObject({ state: 'stopped', endReason: 'killed' })
  expect(server.processesOf(ended?.id ?? '')).toEqual([])
  expect(await admin.killswitch.list()).toMatchObject([{ scope: 'agent', target: DOOMED, unverified: [] }])
}

const STEP = { stepId: 'once', code: 'x=$((x + 1)); echo ran >> /workspace/ran; cat /workspace/ran' }

/** A session and a step in it; what dies under the step may fail the request, and the sandbox stays. */
async function walkToStep(server: TestServer): Promise<void> {
  const { id: sandbox } = await client(server).sandboxes.create({ name: 'walker' })
  const http = new SessionsHttp(server)
  const { id } = await http.open({ runtime: 'bash', sandbox })
  // A connection that breaks is what this is about; what became of the step is asked after the restart.
  await http.send('POST', `/v1/sessions/${id}/steps`, STEP).catch(() => undefined)
}

/** The step has one outcome, its own or that nobody knows it; it never runs twice, and its session lives on. */
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

/** Waits until the server is ready and no row is between two states. */
async function settled(airlock: Airlock): Promise<void> {
  await waitFor(
    async () => {
      const rows = await airlock.sandboxes.list({ state: 'all' }).catch(() => undefined)
      const limbo = rows?.items.filter((row) => ['creating', 'stopping'].includes(row.data.state))
      return limbo?.length === 0 ? true : undefined
    },
    { signal: deadline(30_000), everyMs: 100 },
  )
}

async function livingIds(airlock: Airlock): Promise<readonly string[]> {
  const { items } = await airlock.sandboxes.list({})
  expect(items.map((row) => row.data.state)).toEqual(items.map(() => 'active'))
  return items.map((row) => row.id)
}

async function expectVerifies(server: TestServer): Promise<void> {
  const { audit } = new Airlock({ url: server.url, apiKey: server.adminKey })
  const { publicKey } = await audit.head()
  expect(await verifyExport(linesOf(audit.export()), { publicKey })).toMatchObject({ ok: true, tenant: 'default' })
}

function client(server: TestServer): Airlock {
  return new Airlock({ url: server.url, apiKey: server.developerKey })
}
