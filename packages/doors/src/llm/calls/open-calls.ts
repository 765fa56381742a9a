import { AirlockError } from '@airlock/contract'
import { Places } from './places.ts'

/** Less than one sandbox may ask at once on the kept connection: what programs ask at other doors has room beside it. */
const OPENING_AT_ONCE = 16

interface OpenCall {
  readonly model: string
  readonly cut: AbortController
}

/** The calls of one sandbox that are under way. */
export class OpenCalls {
  readonly #calls = new Set<OpenCall>()
  readonly #opening = new Places(OPENING_AT_ONCE)

  async opening<T>(open: () => Promise<T>): Promise<T> {
    return this.#opening.during(open)
  }

  /** The signal aborts when `gone` does, or when the call may not go on. */
  begin(model: string, gone: AbortSignal): { readonly signal: AbortSignal; end(): void } {
    const call = { model, cut: new AbortController() }
    this.#calls.add(call)
    return { signal: AbortSignal.any([gone, call.cut.signal]), end: () => void this.#calls.delete(call) }
  }

  /** Ends calls of models that are not among these. */
  keepOnly(models: ReadonlySet<string>): void {
    for (const { model, cut } of this.#calls)
      if (!models.has(model)) cut.abort(new AirlockError('policy_denied', `The sandbox may not use ${model} any more.`))
  }
}
