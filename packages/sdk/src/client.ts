import { Agents } from './agents.ts'
import { Approvals } from './approvals.ts'
import { Artifacts } from './artifacts.ts'
import { Audit } from './audit.ts'
import { Budgets } from './budgets.ts'
import { type EventOptions, type FollowOptions, followRecords, pageOfEvents } from './events.ts'
import { Grants } from './grants.ts'
import { Jobs } from './jobs/job.ts'
import { Catalog } from './runs/catalog.ts'
import { Runs } from './runs/run.ts'
import { Keys } from './keys.ts'
import { Killswitch } from './killswitch.ts'
import { Metrics } from './metrics.ts'
import { Models } from './llm/models.ts'
import { Guardian, Policies } from './policies.ts'
import type { AuditEvent, CreatedSandbox, EventPage, Identity, Sandbox as SandboxData, SandboxState } from './nouns.ts'
import { Sandbox, type CreateOptions } from './sandbox.ts'
import { Sessions } from './session.ts'
import { Templates } from './templates.ts'
import { Tenants } from './tenants.ts'
import { Usage } from './usage.ts'
import { Secrets } from './tools/secrets.ts'
import { Tools } from './tools/tools.ts'
import { Webhooks } from './webhooks.ts'
import type { Transport } from './transport/transport.ts'

export interface ListOptions {
  readonly state?: SandboxState | 'all' | undefined
  readonly agent?: string | undefined
  readonly name?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface SandboxPage {
  readonly items: readonly Sandbox[]
  readonly nextCursor: string | null
}

/** An Airlock server, from anywhere: nothing in here needs Node. */
export class AirlockClient {
  readonly sandboxes: Sandboxes
  readonly sessions: Sessions
  readonly jobs: Jobs
  readonly artifacts: Artifacts
  readonly runs: Runs
  readonly catalog: Catalog
  readonly templates: Templates
  readonly agents: Agents
  readonly grants: Grants
  readonly budgets: Budgets
  readonly keys: Keys
  readonly killswitch: Killswitch
  readonly policies: Policies
  readonly guardian: Guardian
  readonly tenants: Tenants
  readonly usage: Usage
  readonly metrics: Metrics
  readonly models: Models
  readonly approvals: Approvals
  readonly webhooks: Webhooks
  readonly secrets: Secrets
  readonly tools: Tools
  readonly audit: Audit
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
    this.sandboxes = new Sandboxes(this.#transport)
    this.sessions = new Sessions(this.#transport)
    this.jobs = new Jobs(this.#transport)
    this.artifacts = new Artifacts(this.#transport)
    this.runs = new Runs(this.#transport)
    this.catalog = new Catalog(this.#transport)
    this.templates = new Templates(this.#transport)
    this.agents = new Agents(this.#transport)
    this.grants = new Grants(this.#transport)
    this.budgets = new Budgets(this.#transport)
    this.keys = new Keys(this.#transport)
    this.killswitch = new Killswitch(this.#transport)
    this.policies = new Policies(this.#transport)
    this.guardian = new Guardian(this.#transport)
    this.tenants = new Tenants(this.#transport)
    this.usage = new Usage(this.#transport)
    this.metrics = new Metrics(this.#transport)
    this.models = new Models(this.#transport)
    this.approvals = new Approvals(this.#transport)
    this.webhooks = new Webhooks(this.#transport)
    this.secrets = new Secrets(this.#transport)
    this.tools = new Tools(this.#transport)
    this.audit = new Audit(this.#transport)
  }

  get url(): string {
    return this.#transport.url
  }

  /**
   * What happens, each record once and in order, also over restarts of the server: from now on, or after a record. Ends
   * only with the signal, or by leaving the loop.
   */
  events(options: FollowOptions = {}): AsyncGenerator<AuditEvent> {
    return followRecords(this.#transport, options)
  }

  /** The latest, or a page after a record; oldest first. Its `after` is where the next page begins. */
  async eventPage(options: EventOptions & { readonly limit?: number | undefined } = {}): Promise<EventPage> {
    return pageOfEvents(this.#transport, options)
  }

  /** Who the server takes us for. */
  async whoami(signal?: AbortSignal): Promise<Identity> {
    return this.#transport.json('whoami', { signal })
  }
}

export class Sandboxes {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Answers when the sandbox is active. */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    const { signal, ...body } = options
    return this.#handle(await this.#transport.json('createSandbox', { body, signal }))
  }

  /** The living sandbox of that name, or a new one. */
  async getOrCreate(name: string, options: Omit<CreateOptions, 'name'> = {}): Promise<Sandbox> {
    const { signal, ...body } = options
    return this.#handle(await this.#transport.json('getOrCreateSandbox', { params: { name }, body, signal }))
  }

  async get(id: string, signal?: AbortSignal): Promise<Sandbox> {
    return this.#handle(await this.#transport.json('getSandbox', { params: { id }, signal }))
  }

  /** One page, newest first: the living ones unless a state is asked for. */
  async list(options: ListOptions = {}): Promise<SandboxPage> {
    const { signal, labels = {}, ...rest } = options
    const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
    const query = { ...rest, label: pairs.length > 0 ? pairs.join(',') : undefined }
    const page = await this.#transport.json('listSandboxes', { query, signal })
    return { items: page.items.map((data) => this.#handle(data)), nextCursor: page.nextCursor }
  }

  #handle(data: SandboxData | CreatedSandbox): Sandbox {
    return new Sandbox(this.#transport, data)
  }
}
