import type { Socket } from 'node:net'
import { AirlockError, type OpenNetworkCall, toAirlockError } from '@airlock/contract'
import { type Log, TokenBucket } from '@airlock/std'
import type { EgressSettings } from '../config.ts'
import type { ControlPlaneLink } from '../link/control-plane-link.ts'
import { Bandwidth } from './bandwidth.ts'
import { dial } from './dial/dial.ts'
import { Names } from './dial/resolve.ts'
import { type CutReason, Flow } from './flow/flow.ts'
import type { Authority } from './name/host.ts'
import { Slots } from '../listener/slots.ts'

/** A person may be asked meanwhile. */
const DECISION_MS = 45_000
const REPORT_MS = 10_000
const CONNECT_MS = 10_000
const RESOLVE_MS = 5_000
const LOOKUPS = 16
/** Less than the calls that the kept connection takes of one sandbox, for its other doors ask there too. */
const ASKS = 20
const RATE = { burst: 200, perSecond: 50 } as const

interface PassagesOptions {
  readonly sandbox: string
  readonly controlPlane: Pick<ControlPlaneLink, 'openConnection' | 'closeConnection'>
  readonly settings: EgressSettings
  readonly log: Log
}

export interface Wanted extends Pick<OpenNetworkCall, 'traffic' | 'method' | 'requestId'> {
  readonly to: Authority
  /** Called once when the flow exists: the client may leave from now on. */
  readonly onFlow: (flow: Flow) => void
}

/** A flow that was decided on and connected. */
export interface Passage {
  readonly flow: Flow
  readonly upstream: Socket
  /** Bytes that are not TLS may pass, too. */
  readonly raw: boolean
}

/** All connections of one sandbox to hosts: decided on one by one, bounded together, and cut together. */
export class Passages {
  readonly #options: PassagesOptions
  readonly #names: Names
  readonly #bandwidth: Bandwidth
  readonly #rate = new TokenBucket(RATE)
  readonly #asks = new Slots(ASKS)
  readonly #flows = new Set<Flow>()
  readonly #byConnection = new Map<string, Flow>()

  constructor(options: PassagesOptions) {
    const { resolvers: servers, bitsPerSecond } = options.settings
    this.#options = options
    this.#names = new Names({ servers, atOnce: LOOKUPS, timeoutMs: RESOLVE_MS })
    this.#bandwidth = new Bandwidth(bitsPerSecond)
  }

  /** Decides, resolves, checks, connects, and lets `use` have the connection. Whatever happens, the end is reported once. */
  async through(wanted: Wanted, use: (passage: Passage) => Promise<void>): Promise<void> {
    const flow = this.#begin()
    try {
      wanted.onFlow(flow)
      const { connection, raw } = await this.#decide(wanted, flow)
      this.#byConnection.set(connection, flow)
      try {
        await this.#connected(wanted.to, flow, async (upstream) => use({ flow, upstream, raw }))
        this.#report(connection, flow, null)
      } catch (error) {
        this.#report(connection, flow, toAirlockError(error))
        throw error
      } finally {
        this.#byConnection.delete(connection)
      }
    } finally {
      flow.done()
      this.#flows.delete(flow)
    }
  }

  cut(connections: readonly string[]): void {
    for (const connection of connections) this.#byConnection.get(connection)?.cut('policy')
  }

  cutAll(reason: CutReason): void {
    for (const flow of this.#flows) flow.cut(reason)
  }

  close(): void {
    this.#names.close()
  }

  #begin(): Flow {
    const { connections, bytes, idleMs, totalMs } = this.#options.settings
    if (this.#flows.size >= connections || this.#rate.take() > 0) throw new AirlockError('too_many_requests')
    const flow = new Flow({ bandwidth: this.#bandwidth, bounds: { bytes, idleMs, totalMs } })
    this.#flows.add(flow)
    return flow
  }

  async #decide({ to, traffic, method, requestId }: Wanted, { signal }: Flow) {
    const { sandbox, controlPlane } = this.#options
    const asked = { sandbox, requestId, host: to.host.text, port: to.port, traffic, method }
    return this.#asks.run(async () => controlPlane.openConnection(asked, { answerMs: DECISION_MS, signal }))
  }

  async #connected(to: Authority, flow: Flow, use: (upstream: Socket) => Promise<void>): Promise<void> {
    const { listed } = this.#options.settings
    const upstream = await dial(to, { names: this.#names, listed, connectMs: CONNECT_MS, signal: flow.signal })
    flow.address = upstream.remoteAddress ?? null
    // 'close' follows, and says all there is to say.
    upstream.on('error', () => {})
    flow.signal.addEventListener('abort', () => upstream.destroy(), { once: true })
    try {
      if (flow.signal.aborted) throw new AirlockError('not_ready')
      await use(upstream)
    } finally {
      upstream.destroy()
    }
  }

  #report(connection: string, flow: Flow, error: AirlockError | null): void {
    const { sandbox, controlPlane, log } = this.#options
    const { address, sent, received } = flow
    const reason = flow.cutReason ?? error?.code ?? null
    const message = error === null ? null : error.message.slice(0, 512)
    const end = { sandbox, connection, address, sent, received, reason, message }
    void this.#asks
      .run(async () => controlPlane.closeConnection(end, { answerMs: REPORT_MS, signal: new AbortController().signal }))
      // The control plane records an end without bytes when the link breaks or the sandbox ends.
      .catch((failure: unknown) =>
        log.warn('could not report the end of a connection', { sandbox, connection, failure }),
      )
  }
}
