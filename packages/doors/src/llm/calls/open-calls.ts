import { AirlockError } from '@airlock/contract'
import { Slots } from '../../listener/slots.ts'

/** Less than one sandbox may ask at once on the kept connection: what programs ask at other doors has room beside it. */
const OPENING_AT_ONCE = 16

interface OpenCall {
  readonly id: string
  readonly model: string
  readonly cut: AbortController
}

/** The calls of one sandbox that are under way. */
export class OpenCalls {
  readonly #calls = new Set<OpenCall>()
  readonly #opening = new Slots(OPENING_AT_ONCE)

  async opening<T>(open: () => Promise<T>): Promise<T> {
    return this.#opening.run(open)
  }

  /** The signal aborts when `gone` does, or when the call may not go on. */
  begin({ id, model }: Omit<OpenCall, 'cut'>, gone: AbortSignal): { readonly signal: AbortSignal; end(): void } {
    const call = { id, model, cut: new AbortController() }
    this.#calls.add(call)
    return { signal: AbortSignal.any([gone, call.cut.signal]), end: () => void this.#calls.delete(call) }
  }

  /** Ends these calls: rules deny them by now. */
  cut(ids: readonly string[]): void {
    for (const { id, cut } of this.#calls)
      if (ids.includes(id)) cut.abort(new AirlockError('policy_denied', 'The rules changed: the call may not go on.'))
  }

  /** Ends calls of models that are not among these. */
  keepOnly(models: ReadonlySet<string>): void {
    for (const { model, cut } of this.#calls)
      if (!models.has(model)) cut.abort(new AirlockError('policy_denied', `The sandbox may not use ${model} any more.`))
  }
}
