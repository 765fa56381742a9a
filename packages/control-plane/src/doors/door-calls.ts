import type { DoorCall, ModelCallAsk } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import type { ModelCalls, SeenDoors } from '../models/model-calls.ts'
import type { NetworkConnections } from '../egress/network-connections.ts'
import type { ToolCalls } from '../tools/tool-calls.ts'
import type { DoorControl } from './door-control.ts'

interface Parts {
  readonly control: Pick<DoorControl, 'answer'>
  readonly models: Pick<ModelCalls, 'open' | 'close'>
  readonly network: Pick<NetworkConnections, 'open' | 'close' | 'lost'>
  readonly tools: Pick<ToolCalls, 'list' | 'open' | 'close' | 'lost'>
}

/** The doors that say hello, and the calls of models that they have. */
export interface Greeting {
  readonly process: string
  readonly modelCalls: readonly string[] | null
}

/** One call of the doors. */
export interface CallOrigin {
  /** The doors process that asked. */
  readonly process: string
  /** Its connection. */
  readonly line: object
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** Every call of the kept connection, sent to the part that answers it. */
export class DoorCalls {
  readonly #clock: Clock
  readonly #parts: Parts
  #seen: SeenDoors | null = null

  constructor({ clock }: { readonly clock: Clock }, parts: Parts) {
    this.#clock = clock
    this.#parts = parts
  }

  /** The doors process that was heard last. Null before the first. */
  get seen(): SeenDoors | null {
    return this.#seen
  }

  greeted({ process, modelCalls }: Greeting): void {
    this.#seen = { process, at: this.#clock.now(), modelCalls: modelCalls && new Set(modelCalls) }
  }

  /** A connection of the doors broke. */
  lost(line: object): void {
    this.#parts.network.lost(line)
    this.#parts.tools.lost(line)
  }

  async answer(call: DoorCall, origin: CallOrigin): Promise<unknown> {
    const { control, network, tools } = this.#parts
    switch (call.ask) {
      case 'model.open':
        return this.#open(call, origin)
      case 'model.close':
        return this.#close(call)
      case 'network.open': {
        const { ask: _ask, ...asked } = call
        return network.open(asked, origin)
      }
      case 'network.close':
        network.close(call)
        return {}
      case 'tool.list':
        return { tools: await tools.list(call) }
      case 'tool.open': {
        const { ask: _ask, ...asked } = call
        return tools.open(asked, origin)
      }
      case 'tool.close':
        tools.close(call)
        return {}
      case 'self':
      case 'heartbeat':
      case 'renew':
      case 'ask':
        return control.answer(call, origin.signal)
    }
  }

  async #close({ ask: _ask, sandbox: _sandbox, ...end }: Extract<ModelCallAsk, { ask: 'model.close' }>) {
    await this.#parts.models.close(end)
    return {}
  }

  async #open({ ask: _ask, ...asked }: Extract<ModelCallAsk, { ask: 'model.open' }>, { process, signal }: CallOrigin) {
    const opened = await this.#parts.models.open(asked, process)
    if (!signal.aborted) return opened
    // Nobody hears the answer, so the call is not sent.
    const { callId } = opened
    const unsent = { usage: 'unsent', status: null, error: 'not_ready', firstByteMs: null, durationMs: 0 } as const
    await this.#parts.models.close({ callId, ...unsent })
    return opened
  }
}
