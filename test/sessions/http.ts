import type { Session, Step, StepEvent, StepResult } from '@airlock/contract'
import type { Reachable } from '../support/server.ts'

export interface Answer<T> {
  readonly status: number
  readonly body: T
}

/** What an error looks like on the wire. */
export interface Refusal {
  readonly error: { readonly code: string; readonly retryable: boolean }
}

/** The public API of sessions by plain requests, as any client in any language uses it. */
export class SessionsHttp {
  readonly #server: Reachable

  constructor(server: Reachable) {
    this.#server = server
  }

  /** A session, or the reason why there is none as a failure of the test. */
  async open(body: Readonly<Record<string, unknown>>): Promise<Session> {
    const { status, body: answer } = await this.send<Session>('POST', '/v1/sessions', body)
    if (status !== 200) throw new TypeError(`no session: ${status} ${JSON.stringify(answer)}`)
    return answer
  }

  async run(session: string, step: Readonly<Record<string, unknown>>): Promise<StepResult> {
    const { status, body } = await this.send<StepResult>('POST', `/v1/sessions/${session}/steps`, step)
    if (status !== 200) throw new TypeError(`no result: ${status} ${JSON.stringify(body)}`)
    return body
  }

  async refused(method: string, path: string, body?: unknown): Promise<readonly [number, string]> {
    const answer = await this.send<Refusal>(method, path, body)
    return [answer.status, answer.body.error.code]
  }

  async session(id: string): Promise<Session> {
    return (await this.send<Session>('GET', `/v1/sessions/${id}`)).body
  }

  async step(of: Pick<Step, 'session' | 'id'>): Promise<Step> {
    return (await this.send<Step>('GET', `/v1/sessions/${of.session}/steps/${of.id}`)).body
  }

  async send<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const response = await this.#fetch(method, path, { body })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as T }
  }

  /** Events as they come, with the id that each had on the wire. */
  async *events(
    method: string,
    path: string,
    options: { readonly body?: unknown; readonly lastEventId?: string; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<{ readonly id: string | undefined; readonly event: StepEvent }> {
    const response = await this.#fetch(method, path, { ...options, accept: 'text/event-stream' })
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1]
        if (data !== undefined) yield { id: /^id: (.*)$/m.exec(frame)?.[1], event: JSON.parse(data) as StepEvent }
      }
    }
  }

  async #fetch(
    method: string,
    path: string,
    options: {
      readonly body?: unknown
      readonly accept?: string
      readonly lastEventId?: string
      readonly signal?: AbortSignal
    },
  ): Promise<Response> {
    return fetch(`${this.#server.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#server.developerKey}`,
        ...(options.accept === undefined ? {} : { accept: options.accept }),
        ...(options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId }),
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    })
  }
}
