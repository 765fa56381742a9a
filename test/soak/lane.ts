import { type Airlock, AirlockError, type ErrorCode, type Sandbox, type Session } from '@airlock/sdk'
import { deadline, sleep, waitFor } from '@airlock/std'
import { Belief, standingOf } from './belief.ts'
import type { Findings } from './findings.ts'
import { limitsOf, type Load, loadNamed } from './loads.ts'
import { type AgentName, agentOf, type Operation, type Runtime, type Tier } from './plan.ts'
import type { SoakServer } from './server.ts'
import { BY_KILL, type Weather } from './weather.ts'

/** Longer than anything should take, also on a machine with more to do than it can: what is not answered by then hangs. */
const PATIENCE_MS = 120_000
/** What a finding tells of before. */
const HISTORY = 8
const FOLLOW_MS = 300
const MEMORY = [96, 128, 160].map((mib) => mib * 1024 * 1024)
const LIFE = { ttlMs: 3_600_000, idleMs: 3_600_000 }
const PRINTS: Readonly<Record<Runtime, (n: number) => string>> = {
  python: (n) => `print(${n})`,
  node: (n) => `console.log(${n})`,
  bash: (n) => `echo ${n}`,
}

export interface LaneContext {
  readonly server: SoakServer
  readonly admin: Airlock
  readonly weather: Weather
  readonly findings: Findings
  readonly tiers: readonly Tier[]
}

/**
 * One user of the server: one sandbox at a time, one operation after another. It knows what it did, and so which answers
 * are right; each other one is a finding.
 */
export class Lane {
  readonly number: number
  readonly agent: AgentName
  readonly #context: LaneContext
  #belief: Belief | undefined
  /** A name under which a sandbox may have come to be, of whose creation nothing was heard. */
  #unheard: { readonly name: string; readonly tier: Tier } | undefined
  #killed: { readonly from: number; readonly to: number } | undefined
  #count = 0
  #history: readonly string[] = []

  constructor(number: number, context: LaneContext) {
    this.number = number
    this.agent = agentOf(number)
    this.#context = context
  }

  async perform(operation: Operation): Promise<void> {
    const { findings } = this.#context
    const since = performance.now()
    const words = wordsOf(operation)
    try {
      const wrong = await this.#do(operation, since)
      this.#remember(words)
      if (wrong === undefined) findings.countDone(words)
      else this.#fail(words, wrong)
    } catch (error) {
      this.#judge(operation, error, since)
    }
  }

  #remember(words: string): void {
    this.#history = [...this.#history, words].slice(-HISTORY)
  }

  #fail(during: string, what: string): void {
    const about = this.#belief ? `${this.#belief.tier} ${this.#belief.id}` : 'no sandbox'
    this.#context.findings.fail(this.number, during, `${what} [${about}; ${this.#history.join(', ')}]`)
  }

  /** The agent was killed in that time. */
  struck(from: number, to: number): void {
    this.#killed = { from, to }
  }

  /** Compares what is with what should be, once nothing disturbs any more. */
  async settle(): Promise<void> {
    await this.#hear()
    const belief = this.#belief
    const killed = this.#killed
    this.#killed = undefined
    if (!belief) return
    if (killed && belief.since < killed.to) {
      belief.mayEndBy('killed')
      if (belief.since < killed.from) belief.become('ended')
    }
    const { data } = await waitFor(async () => this.#settled(belief.id), { signal: patience(), everyMs: 100 })
    const wrong = belief.contradiction(data)
    if (wrong !== undefined) this.#fail('settle', wrong)
    const { memoryBytes } = data.limits
    if (!belief.memory.includes(memoryBytes))
      this.#fail('settle', `${memoryBytes} bytes of memory, not ${belief.memory.join(' or ')}`)
    belief.memory = [memoryBytes]
    const standing = standingOf(data)
    if (standing === undefined || standing === 'ended') this.#belief = undefined
    else belief.become(standing)
    if (this.#belief?.session) await this.#settleSession(this.#belief, this.#belief.session)
  }

  /** Ends what it has, whatever that is. */
  async clear(): Promise<void> {
    await this.settle()
    if (!this.#belief) return
    await this.perform({ do: 'terminate', force: true })
    await this.settle()
  }

  async #do(operation: Operation, since: number): Promise<string | undefined> {
    if (operation.do === 'create' || operation.do === 'begin') return this.#make(operation, since)
    const belief = this.#belief
    // Its creation failed for a reason that was found good, or an end was found good: there is nothing to do it with.
    if (!belief) return undefined
    if (operation.do === 'load') return this.#load(belief, loadNamed(operation.load), since)
    if (operation.do === 'open') return this.#open(belief, operation.runtime)
    if (operation.do === 'step') return this.#step(belief, since)
    if (operation.do === 'terminate') return this.#terminate(belief, operation.force, since)
    return this.#simple(belief, operation.do)
  }

  async #make(
    operation: Extract<Operation, { readonly do: 'create' | 'begin' }>,
    since: number,
  ): Promise<string | undefined> {
    const { admin, tiers } = this.#context
    await this.#hear()
    if (this.#belief) return undefined
    const tier = tiers.includes(operation.tier) ? operation.tier : 'standard'
    const name = `lane${this.number}-${this.#count++}`
    this.#unheard = { name, tier }
    const options = { name, agent: this.agent, tier, limits: limitsOf(tier), ...LIFE }
    if (operation.do === 'create') {
      const sandbox = await admin.sandboxes.create({ ...options, signal: patience() })
      this.#adopt(sandbox.id, tier, since)
      return undefined
    }
    const { runtime } = operation
    const session = await admin.sessions.create({ runtime, create: options, signal: patience() })
    this.#adopt(session.data.sandbox, tier, since).session = session
    return undefined
  }

  #adopt(id: string, tier: Tier, since: number): Belief {
    this.#unheard = undefined
    const belief = new Belief({ id, tier, since, memory: limitsOf(tier).memoryBytes })
    this.#belief = belief
    return belief
  }

  async #load(belief: Belief, load: Load, since: number): Promise<string | undefined> {
    belief.mayEndBy(...(load.endsBy ?? []))
    const sandbox = await this.#sandbox(belief)
    const options = { ...(load.timeoutMs === undefined ? {} : { timeoutMs: load.timeoutMs }), signal: patience() }
    if (load.background) {
      await sandbox.start({ shell: load.shell }, options)
      return this.#surprise(belief)
    }
    if (load.leftAfterMs !== undefined) return this.#leave(sandbox, load, load.leftAfterMs)
    const result = await sandbox.run({ shell: load.shell }, options)
    const wrong = load.check(result)
    if (wrong === undefined) return this.#surprise(belief)
    const { weather } = this.#context
    const isLost = result.state === 'lost' && weather.isRough(since)
    return isLost || belief.isAtRisk || this.#mayBeKilled(since) ? undefined : wrong
  }

  async #leave(sandbox: Sandbox, load: Load, afterMs: number): Promise<string | undefined> {
    const left = AbortSignal.timeout(afterMs)
    try {
      await sandbox.run({ shell: load.shell }, { signal: left })
    } catch (error) {
      if (!left.aborted) throw error
    }
    return undefined
  }

  async #open(belief: Belief, runtime: Runtime): Promise<string | undefined> {
    const session = await this.#context.admin.sessions.create({ runtime, sandbox: belief.id, signal: patience() })
    belief.session = session
    return this.#surprise(belief)
  }

  async #step(belief: Belief, since: number): Promise<string | undefined> {
    const { session } = belief
    if (!session) return undefined
    const n = this.#count++
    const { status, stdout, error } = await session.run(PRINTS[session.runtime](n), { signal: patience() })
    if (status === 'completed' && stdout === `${n}\n`) return this.#surprise(belief)
    const { weather } = this.#context
    if (this.#mayBeKilled(since) || belief.isAtRisk) return undefined
    if (error?.name === 'OutcomeUnknown' && weather.isRough(since)) return undefined
    return `the step is ${status}, said ${JSON.stringify(stdout.slice(0, 200))}, ${error?.name}: ${error?.message}`
  }

  async #terminate(belief: Belief, force: boolean, since: number): Promise<string | undefined> {
    belief.maybe('ended')
    belief.mayEndBy('terminated')
    const sandbox = await this.#sandbox(belief)
    const { data } = await sandbox.terminate({ force, signal: patience() })
    if (standingOf(data) !== 'ended') return `terminated, and ${data.state}`
    if (this.#mayBeKilled(since)) belief.mayEndBy('killed')
    const wrong = belief.contradiction(data)
    this.#belief = undefined
    return wrong && `${belief.tier} ${belief.id}: ${wrong}`
  }

  async #simple(
    belief: Belief,
    what: Exclude<Operation['do'], 'create' | 'begin' | 'load' | 'open' | 'step' | 'terminate'>,
  ): Promise<string | undefined> {
    switch (what) {
      case 'pause':
        return this.#pause(belief)
      case 'resume':
        return this.#resume(belief)
      case 'close':
        return this.#close(belief)
      case 'file':
        return this.#file(belief)
      case 'kill':
        return this.#kill(belief)
      case 'look':
        return this.#look(belief)
      case 'measure':
        return this.#measure(belief)
      case 'relimit':
        return this.#relimit(belief)
    }
  }

  async #pause(belief: Belief): Promise<string | undefined> {
    belief.maybe('paused')
    const { data } = await (await this.#sandbox(belief)).pause(patience())
    if (data.state !== 'paused') return `paused, and ${data.state}`
    belief.become('paused')
    return undefined
  }

  async #resume(belief: Belief): Promise<string | undefined> {
    belief.maybe('active')
    const { data } = await (await this.#sandbox(belief)).resume(patience())
    if (data.state !== 'active') return `resumed, and ${data.state}`
    belief.become('active')
    return undefined
  }

  async #close(belief: Belief): Promise<string | undefined> {
    const { session } = belief
    if (!session) return undefined
    if (session.data.ownsSandbox) {
      belief.maybe('ended')
      belief.mayEndBy('terminated')
    }
    const { data } = await session.terminate(patience())
    if (data.state === 'active') return 'terminated, and active'
    belief.session = undefined
    if (data.ownsSandbox) belief.become('ended')
    return undefined
  }

  async #file(belief: Belief): Promise<string | undefined> {
    const { files } = await this.#sandbox(belief)
    const text = `file ${this.#count++}`
    await files.write('/workspace/file', text, { signal: patience() })
    const read = await files.readText('/workspace/file', { signal: patience() })
    if (read !== text) return `a file with ${JSON.stringify(text)} was read as ${JSON.stringify(read.slice(0, 100))}`
    return this.#surprise(belief)
  }

  async #look(belief: Belief): Promise<string | undefined> {
    const sandbox = await this.#sandbox(belief)
    await sandbox.commands({ signal: patience() })
    const { items } = await this.#context.admin.sandboxes.list({ agent: this.agent, signal: patience() })
    const isListed = items.some(({ id }) => id === belief.id)
    return isListed || belief.may('ended') || belief.isAtRisk ? undefined : 'it lives, and is not in the list'
  }

  /** Also of one that is paused, or has ended. Who follows it goes away again. */
  async #measure(belief: Belief): Promise<string | undefined> {
    const { metrics } = this.#context.admin
    const { sandbox } = await metrics.sandbox(belief.id, { signal: patience() })
    await metrics.all({ agent: this.agent, signal: patience() })
    const left = AbortSignal.timeout(FOLLOW_MS)
    try {
      for await (const { event } of metrics.follow(belief.id, { signal: left })) if (event === 'sample') break
    } catch (error) {
      if (!left.aborted) throw error
    }
    return sandbox === belief.id ? undefined : `the metrics are those of ${sandbox}`
  }

  async #relimit(belief: Belief): Promise<string | undefined> {
    const before = belief.memory.at(-1) ?? 0
    const memoryBytes = MEMORY[this.#count++ % MEMORY.length] ?? 0
    belief.memory = [...belief.memory, memoryBytes]
    try {
      const { data } = await (await this.#sandbox(belief)).setLimits({ memoryBytes }, patience())
      if (data.limits.memoryBytes !== memoryBytes) return `limited to ${memoryBytes}, and ${data.limits.memoryBytes}`
      belief.memory = [memoryBytes]
    } catch (error) {
      // It holds more than that now: it keeps what it had.
      if (!(error instanceof AirlockError) || error.code !== 'limit_in_use' || memoryBytes >= before) throw error
      belief.memory = [before]
    }
    return undefined
  }

  /** Killed and freed again: what was ended stays ended. */
  async #kill(belief: Belief): Promise<string | undefined> {
    const { killswitch } = this.#context.admin
    belief.maybe('ended')
    belief.mayEndBy('killed')
    const what = { scope: 'sandbox', target: belief.id } as const
    try {
      const { unverified } = await killswitch.on({ ...what, reason: 'soak' }, patience())
      belief.become('ended')
      return unverified.length === 0 ? undefined : `${unverified.length} could not be verified`
    } finally {
      await liftAgain(this.#context.admin, what)
    }
  }

  async #sandbox(belief: Belief): Promise<Sandbox> {
    return this.#context.admin.sandboxes.get(belief.id, patience())
  }

  /** Something worked that needs a sandbox that goes on. */
  #surprise(belief: Belief): string | undefined {
    if (belief.is('paused')) return 'it worked in a sandbox that is paused'
    if (belief.is('ended')) return 'it worked in a sandbox that has ended'
    return undefined
  }

  #judge(operation: Operation, error: unknown, since: number): void {
    const { findings } = this.#context
    const words = wordsOf(operation)
    if (!(error instanceof AirlockError)) {
      const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
      return this.#fail(words, what)
    }
    if (!this.#explained(since).has(error.code))
      return this.#fail(words, `${error.code}: ${error.message} (${error.requestId})`)
    this.#remember(`${words}: ${error.code}`)
    findings.countRefused(error.code)
    if (this.#belief && BY_KILL.includes(error.code)) this.#belief.maybe('ended')
  }

  /** In this round, so that what it had may have ended by that. */
  #mayBeKilled(since: number): boolean {
    return this.#killed !== undefined || this.#context.weather.isKilled(this.agent, since)
  }

  #explained(since: number): ReadonlySet<ErrorCode> {
    const codes = new Set(this.#context.weather.explains(this.agent, since))
    const belief = this.#belief
    if (!belief) return codes
    if (this.#mayBeKilled(since)) for (const code of BY_KILL) codes.add(code)
    if (belief.may('paused')) codes.add('sandbox_paused')
    if (belief.may('ended')) for (const code of BY_KILL) codes.add(code)
    if (belief.isAtRisk) for (const code of AT_RISK) codes.add(code)
    return codes
  }

  /** Whether something came of a creation of which nothing was heard. */
  async #hear(): Promise<void> {
    const unheard = this.#unheard
    if (!unheard) return
    const { admin } = this.#context
    const found = await retried(async () =>
      admin.sandboxes.list({ agent: this.agent, name: unheard.name, state: 'all', signal: patience() }),
    )
    const [sandbox] = found.items
    if (!sandbox) return void (this.#unheard = undefined)
    const belief = this.#adopt(sandbox.id, unheard.tier, performance.now())
    belief.maybeAnything()
    // A sandbox of a session that did not come to be is terminated.
    belief.mayEndBy('create_failed', 'create_interrupted', 'killed', 'terminated')
  }

  async #settled(id: string): Promise<Sandbox | undefined> {
    const sandbox = await retried(async () => this.#context.admin.sandboxes.get(id, patience()))
    return standingOf(sandbox.data) === undefined ? undefined : sandbox
  }

  async #settleSession(belief: Belief, session: Session): Promise<void> {
    const { data } = await retried(async () => session.refresh(patience()))
    if (data.state === 'active') return
    belief.session = undefined
    this.#fail('settle', `${session.id} is ${data.state} (${data.endReason})`)
  }
}

const AT_RISK: readonly ErrorCode[] = [...BY_KILL, 'guest_lost', 'runtime_crashed', 'runtime_unreachable']

/** Lifted, or never on: an answer that the server could not give is asked for again. */
export async function liftAgain(
  admin: Airlock,
  what: { readonly scope: 'sandbox' | 'agent'; readonly target: string },
): Promise<void> {
  await retried(async () =>
    admin.killswitch.lift(what, patience()).catch((error: unknown) => {
      if (!(error instanceof AirlockError) || error.code !== 'kill_not_found') throw error
    }),
  )
}

/** Asks until the server answers something that time alone cannot change. */
export async function retried<T>(ask: () => Promise<T>): Promise<T> {
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof AirlockError) || !error.retryable || performance.now() > until) throw error
      await sleep(200)
    }
  }
}

function wordsOf(operation: Operation): string {
  if (operation.do === 'load') return operation.load
  if (operation.do === 'create' || operation.do === 'begin') return `${operation.do} ${operation.tier}`
  return operation.do
}

function patience(): AbortSignal {
  return deadline(PATIENCE_MS)
}
