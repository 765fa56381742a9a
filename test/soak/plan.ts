import { createHash, type Hash } from 'node:crypto'
import { LOAD_NAMES, type LoadName, loadNamed } from './loads.ts'
import { Random } from './random.ts'

export type Tier = 'standard' | 'strict'
export const RUNTIMES = ['python', 'node', 'bash'] as const
export type Runtime = (typeof RUNTIMES)[number]

/** What one lane does next. Each lane has at most one sandbox, and in it at most one session. */
export type Operation =
  | { readonly do: 'create'; readonly tier: Tier }
  /** A session with a sandbox of its own. */
  | { readonly do: 'begin'; readonly tier: Tier; readonly runtime: Runtime }
  | { readonly do: 'open'; readonly runtime: Runtime }
  | { readonly do: 'load'; readonly load: LoadName }
  | { readonly do: 'step' | 'close' | 'pause' | 'resume' | 'file' | 'look' | 'measure' | 'relimit' | 'kill' }
  | { readonly do: 'terminate'; readonly force: boolean }

/** Whom SIGKILL hits: a process of the server, the supervisor alone, or all five at once. */
export const VICTIMS = ['control-plane', 'data-plane', 'recorder', 'doors', 'supervisor', 'all'] as const
export type Victim = (typeof VICTIMS)[number]

export const AGENTS = ['soak-a', 'soak-b'] as const
export type AgentName = (typeof AGENTS)[number]

/** What falls into a round from outside, so many milliseconds after its beginning. */
export type Blow =
  | { readonly blow: 'sigkill'; readonly victim: Victim; readonly afterMs: number }
  | { readonly blow: 'kill-agent'; readonly agent: AgentName; readonly afterMs: number }
  /** SIGTERM and a new start: sandboxes live on. */
  | { readonly blow: 'restart'; readonly afterMs: number }

/** Lanes run side by side, each its operations one after another; the next round begins when all are through. */
export interface Round {
  readonly number: number
  readonly lanes: readonly (readonly Operation[])[]
  readonly blows: readonly Blow[]
}

export function agentOf(lane: number): AgentName {
  return AGENTS[lane % AGENTS.length] ?? AGENTS[0]
}

/** What a lane would have if everything went as planned. */
interface Intended {
  readonly sandbox: 'none' | 'active' | 'paused'
  readonly tier: Tier
  readonly session: 'none' | 'in' | 'owner'
}

const NOTHING: Intended = { sandbox: 'none', tier: 'standard', session: 'none' }
const LONGEST = 5
const BLOW_WITHIN_MS = 2_500

/** Makes rounds of a seed and a number of lanes, always the same ones: nothing that happens has a say. */
export class Plan {
  readonly #seed: number
  readonly #calm: boolean
  #intended: readonly Intended[]
  #number = 0
  readonly #hash: Hash = createHash('sha256')

  /** A calm plan has no blows. */
  constructor(options: { readonly seed: number; readonly lanes: number; readonly calm?: boolean }) {
    this.#seed = options.seed
    this.#calm = options.calm ?? false
    this.#intended = Array.from({ length: options.lanes }, () => NOTHING)
  }

  /** Of all rounds so far. */
  get hash(): string {
    return this.#hash.copy().digest('hex').slice(0, 16)
  }

  next(): Round {
    const number = this.#number++
    const blows = this.#calm ? [] : blowsOf(new Random(this.#seed, number, 'blows'))
    const planned = this.#intended.map((intended, lane) =>
      operationsOf(intended, new Random(this.#seed, this.#calm ? 'calm' : 'rough', number, lane)),
    )
    const killed = new Set(blows.flatMap((one) => (one.blow === 'kill-agent' ? [one.agent] : [])))
    this.#intended = planned.map(({ after }, lane) => (killed.has(agentOf(lane)) ? NOTHING : after))
    const round = { number, lanes: planned.map(({ operations }) => operations), blows }
    this.#hash.update(JSON.stringify(round))
    return round
  }

  /** All lanes were emptied between two rounds. */
  empty(): void {
    this.#intended = this.#intended.map(() => NOTHING)
  }
}

function blowsOf(random: Random): readonly Blow[] {
  const kind = random.weighted([
    ['none', 35],
    ['sigkill', 45],
    ['twice', 5],
    ['kill-agent', 12],
    ['restart', 3],
  ] as const)
  const afterMs = random.below(BLOW_WITHIN_MS)
  if (kind === 'none') return []
  if (kind === 'restart') return [{ blow: 'restart', afterMs }]
  if (kind === 'kill-agent') return [{ blow: 'kill-agent', agent: random.pick(AGENTS), afterMs }]
  const first: Blow = { blow: 'sigkill', victim: random.pick(VICTIMS), afterMs }
  if (kind === 'sigkill') return [first]
  return [first, { blow: 'sigkill', victim: random.pick(VICTIMS), afterMs: random.below(BLOW_WITHIN_MS) }]
}

function operationsOf(
  before: Intended,
  random: Random,
): { readonly operations: readonly Operation[]; readonly after: Intended } {
  const operations: Operation[] = []
  let now = before
  for (let left = 1 + random.below(LONGEST); left > 0; left--) {
    const operation = nextOperation(now, random)
    operations.push(operation)
    now = afterOperation(now, operation)
  }
  return { operations, after: now }
}

function nextOperation(now: Intended, random: Random): Operation {
  if (now.sandbox === 'none') return beginning(random)
  // Now and then something is asked for that the state forbids: the answer must say so.
  if (now.sandbox === 'paused' && !random.isBelow(0.2)) return whilePaused(random)
  const kind = random.weighted([
    ['load', 40],
    ['step', now.session === 'none' ? 0 : 25],
    ['open', now.session === 'none' ? 10 : 0],
    ['close', now.session === 'none' ? 0 : 4],
    ['file', 6],
    ['look', 4],
    ['measure', 4],
    ['relimit', 4],
    ['pause', 14],
    ['resume', 3],
    ['kill', 3],
    ['terminate', 10],
  ] as const)
  if (kind === 'load') return { do: 'load', load: chooseLoad(now.tier, random) }
  if (kind === 'open') return { do: 'open', runtime: random.pick(RUNTIMES) }
  if (kind === 'terminate') return { do: 'terminate', force: random.isBelow(0.3) }
  return { do: kind }
}

function beginning(random: Random): Operation {
  const tier = random.isBelow(0.25) ? 'strict' : 'standard'
  if (random.isBelow(0.25)) return { do: 'begin', tier, runtime: random.pick(RUNTIMES) }
  return { do: 'create', tier }
}

function whilePaused(random: Random): Operation {
  const kind = random.weighted([
    ['resume', 60],
    ['pause', 8],
    ['look', 8],
    ['measure', 4],
    ['kill', 5],
    ['terminate', 15],
  ] as const)
  return kind === 'terminate' ? { do: 'terminate', force: random.isBelow(0.3) } : { do: kind }
}

function chooseLoad(tier: Tier, random: Random): LoadName {
  return random.weighted(
    LOAD_NAMES.map((name) => [name, loadNamed(name).tiers.includes(tier) ? loadNamed(name).weight : 0]),
  )
}

function afterOperation(now: Intended, operation: Operation): Intended {
  if (operation.do === 'create') return { sandbox: 'active', tier: operation.tier, session: 'none' }
  if (operation.do === 'begin') return { sandbox: 'active', tier: operation.tier, session: 'owner' }
  if (operation.do === 'open') return now.sandbox === 'active' ? { ...now, session: 'in' } : now
  if (operation.do === 'close') return now.session === 'owner' ? NOTHING : { ...now, session: 'none' }
  if (operation.do === 'pause') return { ...now, sandbox: 'paused' }
  if (operation.do === 'resume') return { ...now, sandbox: 'active' }
  return operation.do === 'kill' || operation.do === 'terminate' ? NOTHING : now
}
