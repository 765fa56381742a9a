import { isRecord } from '../json/is-record.ts'

/** Bound on the choices of one answer. No provider has more. */
const MAX_CHOICES = 128

/** The choices of a streamed chat completion: which of them go on. */
export class OpenChoices {
  readonly #open = new Set<number>()
  readonly #finished = new Set<number>()
  #isOdd = false

  /** Whether a choice finished and no other one goes on. */
  get areFinished(): boolean {
    return !this.#isOdd && this.#finished.size > 0 && this.#open.size === 0
  }

  /** A choice of a chunk. Content after the end of a choice opens it again. */
  take(choice: unknown): void {
    const index = indexOf(choice)
    if (index === undefined || !isRecord(choice)) {
      this.#isOdd = true
      return
    }
    if (typeof choice['finish_reason'] === 'string') {
      this.#open.delete(index)
      this.#finished.add(index)
    } else if (!this.#finished.has(index) || hasContent(choice['delta'])) this.#open.add(index)
  }
}

/** Undefined for a choice that no provider would send. Some servers leave out the index of a single choice. */
function indexOf(choice: unknown): number | undefined {
  if (!isRecord(choice)) return undefined
  const index = choice['index'] ?? 0
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < MAX_CHOICES ? index : undefined
}

/** Some servers repeat a finished choice, without content, in the chunk with usage. */
export function hasContent(delta: unknown): boolean {
  if (!isRecord(delta)) return false
  return Object.entries(delta).some(([key, value]) => key !== 'role' && value !== null && value !== '')
}
