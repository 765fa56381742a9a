import type { AirlockError, CloseModelCall } from '@airlock/contract'
import type { FailureUsage } from '../answer/provider-error.ts'
import type { Usage } from '../usage/usage.ts'
import type { UsageMeter } from '../usage/usage-meter.ts'

/** How a call goes, for its report. Nothing is known of its usage until the provider says it. */
export class CallEnd {
  readonly #callId: string
  readonly #begunAt = performance.now()
  #usage: CloseModelCall['usage'] = 'unsent'
  #error: string | null = null
  #firstByteMs: number | null = null

  constructor(callId: string) {
    this.#callId = callId
  }

  /** From now on the provider may have seen it. */
  sent(): void {
    this.#usage = 'unreported'
  }

  unsent(): void {
    this.#usage = 'unsent'
  }

  /** The provider refused it, and counted nothing. */
  refused(): void {
    this.#usage = NOTHING
  }

  /** The provider answered a whole failure. Nobody bills one, unless it says usage; usage that is not understood may be any. */
  failedWhole(usage: FailureUsage): void {
    if (usage === 'none') this.#usage = NOTHING
    else this.#usage = usage === 'unreadable' ? 'unreported' : modelUsageOf(usage)
  }

  /** Whether the call is charged its ceiling: the provider may have seen it, and its usage is unknown. */
  get isChargedCeiling(): boolean {
    return this.#usage === 'unreported'
  }

  begun(): void {
    this.#firstByteMs ??= this.#sinceBegin()
  }

  /** What broke off may have used more than was said before. */
  metered({ usage, isFinal }: Pick<UsageMeter, 'usage' | 'isFinal'>): void {
    this.#usage = isFinal && usage !== 'missing' ? modelUsageOf(usage) : 'unreported'
  }

  failed({ code }: AirlockError): void {
    this.#error ??= code
  }

  /** `status`: what the program inside was answered; null when it was gone. */
  report(status: number | null): CloseModelCall {
    return {
      callId: this.#callId,
      usage: this.#usage,
      status,
      error: this.#error,
      firstByteMs: this.#firstByteMs,
      durationMs: this.#sinceBegin(),
    }
  }

  #sinceBegin(): number {
    return Math.max(0, Math.round(performance.now() - this.#begunAt))
  }
}

const NOTHING = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

function modelUsageOf({ input, output, cacheRead, cacheWrite, cacheWriteLong }: Usage) {
  return {
    inputTokens: input,
    outputTokens: output,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite + cacheWriteLong,
  }
}
