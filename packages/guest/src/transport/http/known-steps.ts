import { createHash } from 'node:crypto'
import type { StepBody } from './agent-request.ts'
import { AgentFault } from './agent-fault.ts'

/** Ids of one session: after that it takes no more, for one that is forgotten could run twice. */
const IDS = 10_000
/** Results of one session. */
const RESULTS = 256
const RESULT_CHARACTERS = 16 * 1024 * 1024

interface Known<Result> {
  readonly digest: string
  /** Undefined when it is no longer kept. */
  result: Promise<Result> | undefined
  characters: number
}

/** The steps of a session by their ids: each runs at most once. */
export class KnownSteps<Result> {
  readonly #steps = new Map<string, Known<Result>>()
  /** Ids of results that are there, oldest first. */
  readonly #kept: string[] = []
  #characters = 0

  /** The first result of this id; runs it only when it is new. */
  async once(body: StepBody, run: () => Promise<Result>): Promise<Result> {
    const digest = digestOf(body)
    const known = this.#steps.get(body.stepId)
    if (known && known.digest !== digest)
      throw new AgentFault('step_conflict', 'this step id was used for another step')
    if (known && !known.result) throw new AgentFault('result_dropped', 'the result of this step is no longer kept')
    if (known?.result) return await known.result
    if (this.#steps.size >= IDS) throw new AgentFault('too_many_steps', `a session takes at most ${IDS} steps`)
    return await this.#run(body.stepId, digest, run)
  }

  async #run(id: string, digest: string, run: () => Promise<Result>): Promise<Result> {
    const result = run()
    const step: Known<Result> = { digest, result, characters: 0 }
    this.#steps.set(id, step)
    try {
      const value = await result
      this.#keep(id, step, value)
      return value
    } catch (error) {
      // It was refused and never ran: the same id may try again.
      this.#steps.delete(id)
      throw error
    }
  }

  #keep(id: string, step: Known<Result>, value: Result): void {
    step.characters = JSON.stringify(value).length
    this.#characters += step.characters
    this.#kept.push(id)
    while (this.#kept.length > RESULTS || (this.#characters > RESULT_CHARACTERS && this.#kept.length > 1)) this.#drop()
  }

  #drop(): void {
    const oldest = this.#steps.get(this.#kept.shift() ?? '')
    if (!oldest) return
    this.#characters -= oldest.characters
    oldest.result = undefined
  }
}

function digestOf({ code, env, stdin, timeoutMs }: StepBody): string {
  const parts = [code, Object.entries(env ?? {}), stdin ?? '', timeoutMs ?? null]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64')
}
