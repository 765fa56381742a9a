import {
  AirlockError,
  doorEnv,
  type NodeCommand,
  type NodeCommandSpec,
  type NodeSession,
  type NodeSessionSpec,
  type NodeStepSpec,
  type Permit,
} from '@airlock/contract'
import type { HostDisk } from '../isolation/host-disk.ts'
import { processLimits } from './limits.ts'
import type { Entry } from './entry.ts'
import type { Registry } from './registry.ts'

/** Starts what runs inside: with what the sandbox was given under it, within what its permit bounds. */
export class Runs {
  readonly #registry: Registry
  readonly #hostDisk: HostDisk

  constructor(options: { readonly registry: Registry; readonly hostDisk: HostDisk }) {
    this.#registry = options.registry
    this.#hostDisk = options.hostDisk
  }

  async run(id: string, spec: NodeCommandSpec): Promise<NodeCommand> {
    this.#hostDisk.assertRoomForOutput()
    const entry = this.#running(id)
    const { permit, link } = entry
    const limits = processLimits(entry, spec.limits)
    return link.commands.run({ ...spec, env: envOf(permit, spec.env), timeoutMs: timeoutOf(permit, spec), ...limits })
  }

  /** Gives code to an interpreter. */
  async step(id: string, session: string, spec: NodeStepSpec): Promise<NodeCommand> {
    this.#hostDisk.assertRoomForOutput()
    const { permit, link } = this.#running(id)
    return link.sessions.step(session, { ...spec, timeoutMs: timeoutOf(permit, spec) })
  }

  /** Starts an interpreter. */
  async openSession(id: string, spec: NodeSessionSpec): Promise<NodeSession> {
    const entry = this.#registry.running(id)
    return entry.link.sessions.open({ ...spec, env: envOf(entry.permit, spec.env), ...processLimits(entry) })
  }

  /** `guest_lost` would leave open whether the guest had begun: one that is lost already is asked for nothing. */
  #running(id: string): Entry {
    if (this.#registry.entries.get(id)?.state === 'lost') throw new AirlockError('sandbox_not_active')
    return this.#registry.running(id)
  }
}

/** What the permit bounds is bounded here again. */
function timeoutOf({ conditions }: Permit, { timeoutMs }: { readonly timeoutMs: number }): number {
  return Math.min(timeoutMs, conditions.maxTimeoutMs ?? timeoutMs)
}

/** What the caller gives over what the sandbox was given; who it is and where its door is, nobody changes. */
function envOf(permit: Permit, given: Permit['env']): Permit['env'] {
  return { ...permit.env, ...given, ...doorEnv(permit) }
}
