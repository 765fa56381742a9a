import { AirlockError, type AirlockClient, connectPage, type Identity } from '@airlock/sdk/browser'

/** The server that this page is from. */
export class Server {
  readonly client: AirlockClient
  readonly #url: string

  constructor(url: string) {
    this.#url = url
    this.client = connectPage(url)
  }

  /** Undefined when nobody is signed in. */
  async whoami(): Promise<Identity | undefined> {
    try {
      return await this.client.whoami()
    } catch (error) {
      if (error instanceof AirlockError && error.code === 'unauthenticated') return undefined
      throw error
    }
  }

  async signIn(by: { readonly key: string } | { readonly link: string }): Promise<void> {
    await this.#post('/sign-in', by)
  }

  async signOut(): Promise<void> {
    await this.#post('/sign-out', {})
  }

  /** Whether the server grants anything now, and its warnings. */
  async readiness(signal: AbortSignal): Promise<Readiness> {
    const response = await fetch(new URL('/readyz', this.#url), { signal })
    const body = (await response.json()) as {
      readonly warnings?: readonly string[]
      readonly error?: { readonly message: string }
    }
    if (response.ok) return { ready: true, warnings: body.warnings ?? [] }
    return { ready: false, warnings: [body.error?.message ?? 'The server is not ready.'] }
  }

  async #post(path: string, body: object): Promise<void> {
    const headers = { 'content-type': 'application/json', 'airlock-page': '1' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(new URL(path, this.#url), init).catch((cause: unknown) => {
      throw new AirlockError('server_unreachable', 'The server does not answer.', { cause })
    })
    if (response.ok) return
    const { error } = (await response.json()) as { readonly error: { readonly message: string; readonly hint: string } }
    throw new AirlockError('unauthenticated', error.message, { hint: error.hint })
  }
}

export interface Readiness {
  readonly ready: boolean
  readonly warnings: readonly string[]
}
