import type { ErrorCode } from '@airlock/sdk'
import type { AgentName, Victim } from './plan.ts'

/** Something that falls on the server or on an agent, for a while. */
export type Disturbance =
  | { readonly of: 'process'; readonly victim: Victim | 'restart' }
  | { readonly of: 'agent'; readonly agent: AgentName }

interface Spell {
  readonly what: Disturbance
  readonly from: number
  to: number
}

const GONE: readonly ErrorCode[] = ['server_unreachable', 'not_ready']
const NO_NODE: readonly ErrorCode[] = ['data_plane_unavailable', 'runtime_unreachable']
const NO_EVIDENCE: readonly ErrorCode[] = ['evidence_unavailable']
const NO_DOOR: readonly ErrorCode[] = ['door_unavailable']
const EVERYTHING: readonly ErrorCode[] = [...GONE, ...NO_NODE, ...NO_EVIDENCE, ...NO_DOOR]

/** What the death of each process may make of a request that it meets: nothing else explains an error. */
const BY_VICTIM: Readonly<Record<Victim | 'restart', readonly ErrorCode[]>> = {
  'control-plane': GONE,
  'data-plane': NO_NODE,
  recorder: NO_EVIDENCE,
  doors: NO_DOOR,
  supervisor: EVERYTHING,
  all: EVERYTHING,
  restart: EVERYTHING,
}

/** Of an agent, or a sandbox, that a killswitch ends. */
export const BY_KILL: readonly ErrorCode[] = ['killed', 'sandbox_ended', 'sandbox_not_active', 'session_expired']

/** Remembers what was disturbed when, so that an answer can be explained by it, or not. */
export class Weather {
  readonly #spells: Spell[] = []

  /** Answers what ends it. */
  begin(what: Disturbance): () => void {
    const spell: Spell = { what, from: performance.now(), to: Infinity }
    this.#spells.push(spell)
    return () => (spell.to = performance.now())
  }

  /** Whether a process died, or was away, at any moment since. */
  isRough(since: number): boolean {
    return this.#during(since).some(({ of }) => of === 'process')
  }

  isKilled(agent: AgentName, since: number): boolean {
    return this.#during(since).some((what) => what.of === 'agent' && what.agent === agent)
  }

  /** The errors that what happened since may answer to an agent. */
  explains(agent: AgentName, since: number): ReadonlySet<ErrorCode> {
    const codes = this.#during(since).flatMap((what) => {
      if (what.of === 'process') return BY_VICTIM[what.victim]
      return what.agent === agent ? BY_KILL : []
    })
    return new Set(codes)
  }

  #during(since: number): readonly Disturbance[] {
    return this.#spells.filter(({ to }) => to >= since).map(({ what }) => what)
  }
}
