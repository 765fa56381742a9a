import type { NewWebhook, Webhook, WebhookEvent } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

/** Who is told of events by HTTP. Needs the key of an admin. */
export class Webhooks {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The answer holds the secret that signs what is sent; nobody can ask for it again. */
  async create(options: {
    readonly url: string
    readonly events: readonly WebhookEvent[]
    readonly signal?: AbortSignal | undefined
  }): Promise<NewWebhook> {
    const { signal, ...body } = options
    return this.#transport.json('createWebhook', { body, signal })
  }

  async list(signal?: AbortSignal): Promise<readonly Webhook[]> {
    return (await this.#transport.json('listWebhooks', { signal })).items
  }

  async get(id: string, signal?: AbortSignal): Promise<Webhook> {
    return this.#transport.json('getWebhook', { params: { id }, signal })
  }

  async remove(id: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.json('removeWebhook', { params: { id }, signal })
  }
}
