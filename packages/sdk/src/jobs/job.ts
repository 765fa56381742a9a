import { AirlockError } from '../errors.ts'
import { encodeBase64 } from '../transport/base64.ts'
import { followEvents } from '../transport/event-stream.ts'
import type { Job as JobData, JobEvent, JobLanguage, JobLog, JobState, SomeLimits } from '../nouns.ts'
import type { Transport } from '../transport/transport.ts'

/** A file that is there when the job begins: its path, absolute or relative to /workspace, and its content. */
export interface JobFile {
  readonly path: string
  readonly content: string | Uint8Array
}

/** An artifact, and where its content is when the job begins. */
export interface JobArtifactInput {
  readonly artifact: string
  readonly path: string
}

export interface JobOptions {
  readonly template?: string | undefined
  readonly agent?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly limits?: SomeLimits | undefined
  readonly tier?: 'standard' | 'strict' | undefined
  readonly files?: readonly JobFile[] | undefined
  /** Artifacts that it is given as files. */
  readonly inputs?: readonly JobArtifactInput[] | undefined
  /** Files to keep as artifacts when it ends, by patterns: absolute, or relative to /workspace. */
  readonly artifacts?: readonly string[] | undefined
  readonly artifactTtlMs?: number | undefined
  /** Of one try. */
  readonly timeoutMs?: number | undefined
  /** How long it may wait to begin. */
  readonly queueMs?: number | undefined
  /** How often a try that failed is followed by another. Without retries it begins at most once. */
  readonly retries?: number | undefined
  readonly retryDelayMs?: number | undefined
  readonly maxOutputBytes?: number | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** The same key again answers the first job, so submitting again after a broken connection does no harm. */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A program and its arguments, a line for a shell, or code with its language. */
export type JobWork =
  | readonly string[]
  | { readonly shell: string }
  | { readonly code: string; readonly language: JobLanguage }

export interface JobListOptions {
  readonly state?: JobState | undefined
  readonly agent?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A job, as it was when the server last told. Iterating it follows its log from the beginning to its end. */
export class Job implements AsyncIterable<JobEvent> {
  readonly #transport: Transport
  #data: JobData

  /** @internal */
  constructor(transport: Transport, data: JobData) {
    this.#transport = transport
    this.#data = data
  }

  get id(): string {
    return this.#data.id
  }

  get data(): JobData {
    return this.#data
  }

  [Symbol.asyncIterator](): AsyncGenerator<JobEvent> {
    return this.events()
  }

  /** What it says from the byte `from` on, over all tries, until it has ended; over restarts of the server too. */
  async *events(
    options: { readonly from?: number; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<JobEvent> {
    const subjectOf = (event: JobEvent) => (event.event === 'started' ? event.job.id : undefined)
    const subject = { route: 'jobLogs', params: { id: this.id }, subjectOf } as const
    for await (const event of followEvents<JobEvent>(this.#transport, subject, options)) {
      if (event.event === 'started' || event.event === 'ended') this.#data = event.job
      yield event
    }
  }

  /** Asks again how it stands. */
  async refresh(signal?: AbortSignal): Promise<this> {
    this.#data = await this.#transport.json('getJob', { params: { id: this.id }, signal })
    return this
  }

  /** What there is of its log now, without waiting. */
  async log(signal?: AbortSignal): Promise<JobLog> {
    const log = await this.#transport.json('jobLogs', { params: { id: this.id }, signal })
    this.#data = log.job
    return log
  }

  /** Waits for its end, whichever it is, and answers its log. */
  async wait(signal?: AbortSignal): Promise<JobLog> {
    for await (const event of this.events({ signal })) if (event.event === 'ended') return this.log(signal)
    throw new AirlockError('server_unreachable', 'The stream ended before the job.')
  }

  async cancel(signal?: AbortSignal): Promise<this> {
    this.#data = await this.#transport.json('cancelJob', { params: { id: this.id }, signal })
    return this
  }
}

/** Work that outlives its caller: queued, run in a fresh sandbox, kept with its log and its result. */
export class Jobs {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Answers as soon as it is queued. */
  async submit(work: JobWork, options: JobOptions = {}): Promise<Job> {
    const { signal, files = [], ...rest } = options
    const what = 'shell' in work || 'code' in work ? { ...work } : { argv: work }
    const body = { ...what, ...rest, files: files.map(toInput) }
    return new Job(this.#transport, await this.#transport.json('submitJob', { body, signal }))
  }

  async get(id: string, signal?: AbortSignal): Promise<Job> {
    return new Job(this.#transport, await this.#transport.json('getJob', { params: { id }, signal }))
  }

  /** One page, newest first. */
  async list(
    options: JobListOptions = {},
  ): Promise<{ readonly items: readonly Job[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    const page = await this.#transport.json('listJobs', { query, signal })
    return { items: page.items.map((data) => new Job(this.#transport, data)), nextCursor: page.nextCursor }
  }
}

function toInput({ path, content }: JobFile): { readonly path: string; readonly base64: string } {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return { path, base64: encodeBase64(bytes) }
}
