import { isRecord } from '../json/is-record.ts'
import type { CallName } from '../routes/find-route.ts'
import { OpenChoices } from './open-choices.ts'
import { readChatUsage, readEmbeddingsUsage, readMessagesUsage, readResponsesUsage } from './read-usage.ts'
import type { Usage } from './usage.ts'

const RESPONSE_ENDS: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

/**
 * What a call used, as its answer says it where its protocol says it: never by what texts look like. The latest revision
 * holds. A revision that is not understood makes usage missing: what an earlier one said may be less than what was used.
 */
export class UsageMeter {
  readonly #name: CallName
  #usage: Usage | undefined
  #isFinal = false
  /** Of messages: later revisions leave out what did not change. */
  #fields: object = {}
  readonly #choices = new OpenChoices()

  constructor(name: CallName) {
    this.#name = name
  }

  /** Zero is a usage; missing is none. */
  get usage(): Usage | 'missing' {
    return this.#usage ?? 'missing'
  }

  /** Whether the provider said that no more will come: what an answer used that broke off may be more. */
  get isFinal(): boolean {
    return this.#isFinal && this.#usage !== undefined
  }

  /** The data of one event of a stream. */
  takeEvent(event: unknown): void {
    if (!isRecord(event)) return
    if (this.#name === 'chat') this.#takeChunk(event)
    else if (this.#name === 'responses') {
      if (RESPONSE_ENDS.has(event['type']) && isRecord(event['response'])) this.takeBody(event['response'])
    } else if (this.#name === 'messages') this.#takeMessageEvent(event)
  }

  /** An answer that is no stream. */
  takeBody(body: unknown): void {
    if (isRecord(body)) this.#take(body['usage'], true)
  }

  /** The last chunk has usage and no choices; some servers put usage beside the last choice, or in every chunk. */
  #takeChunk(chunk: Readonly<Record<string, unknown>>): void {
    const choices: readonly unknown[] = Array.isArray(chunk['choices']) ? chunk['choices'] : []
    for (const choice of choices) this.#choices.take(choice)
    if (!this.#choices.areFinished) this.#isFinal = false
    this.#take(chunk['usage'], this.#choices.areFinished)
  }

  #takeMessageEvent({ type, message, usage }: Readonly<Record<string, unknown>>): void {
    if (type === 'message_start' && isRecord(message)) this.#take(message['usage'], false)
    else if (type === 'message_delta') this.#take(usage, true)
  }

  #take(found: unknown, isFinal: boolean): void {
    if (found === undefined || found === null) return
    this.#usage = this.#read(found)
    this.#isFinal = isFinal
  }

  #read(found: unknown): Usage | undefined {
    switch (this.#name) {
      case 'chat':
        return readChatUsage(found)
      case 'responses':
        return readResponsesUsage(found)
      case 'embeddings':
        return readEmbeddingsUsage(found)
      case 'messages':
        if (!isRecord(found)) return undefined
        this.#fields = { ...this.#fields, ...withoutNulls(found) }
        return readMessagesUsage(this.#fields)
      case 'countTokens':
        return undefined
    }
  }
}

function withoutNulls(value: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== null))
}
