import { toError } from './errors.ts'
import type { Approval, ApprovalDetail, ApprovalEvent, ApprovalScope, ApprovalState } from './nouns.ts'
import { parseServerEvents } from './transport/sse.ts'
import { chunksIn, type Transport } from './transport/transport.ts'

export interface ApprovalListOptions {
  /** The pending ones when absent. */
  readonly state?: ApprovalState | 'all' | undefined
  readonly agent?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ApproveOptions {
  /** `once` when absent. */
  readonly scope?: ApprovalScope | undefined
  /** When an approval that is used again and again ends; needed by the scope `until`. */
  readonly until?: string | undefined
  readonly note?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** What people were asked, and their answers. To answer needs the key of an admin or an operator, other than who asked. */
export class Approvals {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** One page, newest first. */
  async list(
    options: ApprovalListOptions = {},
  ): Promise<{ readonly items: readonly Approval[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    return this.#transport.json('listApprovals', { query, signal })
  }

  /** With all that was asked for. */
  async get(id: string, signal?: AbortSignal): Promise<ApprovalDetail> {
    return this.#transport.json('getApproval', { params: { id }, signal })
  }

  async approve(id: string, options: ApproveOptions = {}): Promise<Approval> {
    const { signal, ...body } = options
    return this.#transport.json('approveApproval', { params: { id }, body, signal })
  }

  async reject(
    id: string,
    options: { readonly note?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Approval> {
    const { signal, ...body } = options
    return this.#transport.json('rejectApproval', { params: { id }, body, signal })
  }

  /** Takes one back that is not used yet, or is used again and again. */
  async revoke(id: string, signal?: AbortSignal): Promise<Approval> {
    return this.#transport.json('revokeApproval', { params: { id }, signal })
  }

  /** What is pending, then every new ask and every answer, until the connection ends: what is pending is told again by the next. */
  async *watch(
    options: { readonly agent?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<Exclude<ApprovalEvent, { readonly event: 'error' }>> {
    const { agent, signal } = options
    const headers = { accept: 'text/event-stream' }
    const response = await this.#transport.send('approvalEvents', { query: { agent }, headers, signal })
    if (!response.body) return
    for await (const { data } of parseServerEvents(chunksIn(response.body))) {
      const event = parseEvent(data)
      if (event.event === 'error') throw toError(event.error)
      yield event
    }
  }
}

/** Trusts the server's shape: it checks what it sends against the contract. */
function parseEvent(data: string): ApprovalEvent {
  return JSON.parse(data) as ApprovalEvent
}
