import {
  AirlockError,
  type Artifact,
  type ArtifactLink,
  type CollectArtifactsBody,
  type CollectedArtifacts,
  type LinkArtifactBody,
} from '@airlock/contract'
import { createHash } from 'node:crypto'
import { actingAgent } from '../agents/acting-agent.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { countBytes } from '../commands/commands.ts'
import { type Deed, deedOf, describeError, doRecorded, type Governed, saying } from '../evidence/evidence.ts'
import type { Activity } from '../sandboxes/activity.ts'
import { isOwned, mayUseAgent, usableSandbox } from '../sandboxes/owned-sandbox.ts'
import { findAgent } from '../store/agents.ts'
import { findApiKey } from '../store/api-keys.ts'
import { findArtifact, listArtifacts, listArtifactsOfTry, type StoredArtifact } from '../store/artifacts.ts'
import { findCommand } from '../store/commands.ts'
import { findNode } from '../store/nodes.ts'
import type { StoredJob } from '../store/jobs.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import { findStepOf } from '../store/steps.ts'
import type { ArtifactKeeper } from './artifact-keeper.ts'
import { provenanceOf, toArtifact, toTime } from './artifact-nouns.ts'
import { Collection, type Collected, collectedPayload } from './collect.ts'
import { LinkedDownloads } from './linked-downloads.ts'

export interface ListArtifacts {
  readonly sandbox?: string | undefined
  readonly command?: string | undefined
  readonly step?: string | undefined
  readonly job?: string | undefined
  readonly agent?: string | undefined
  readonly name?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** An artifact that may be read; each read is evidence. */
export interface ReadableArtifact {
  readonly artifact: Artifact
  /** From a byte to another, both included. */
  open(part: { readonly from: number; readonly to: number }, signal: AbortSignal): Promise<AsyncIterable<Buffer>>
}

/** Bytes that leave sandboxes on purpose, and outlive them. */
export class Artifacts {
  readonly #context: Context
  readonly #activity: Activity
  readonly #keeper: ArtifactKeeper
  readonly #linked = new LinkedDownloads()

  constructor(context: Context, parts: { readonly activity: Activity; readonly keeper: ArtifactKeeper }) {
    this.#context = context
    this.#activity = parts.activity
    this.#keeper = parts.keeper
  }

  /** All or nothing: a collection that ends early leaves nothing. */
  async collect(
    caller: Caller,
    id: string,
    body: CollectArtifactsBody & { readonly signal: AbortSignal },
  ): Promise<CollectedArtifacts> {
    const sandbox = await usableSandbox(this.#context, caller, id)
    await this.#activity.touch(sandbox)
    const { command = null, step = null } = body
    const codeSha256 = await this.#codeOf(id, { command, step })
    const source = { command, step, job: null, attempt: null, codeSha256 }
    const { items, skipped, skippedCount, error } = await this.#collect(caller, sandbox, { ...body, source, known: [] })
    if (error === undefined) return { items: items.map(toArtifact), skipped: [...skipped], skippedCount }
    for (const row of items) await this.#keeper.remove(row)
    throw error
  }

  /** At the end of a try. What an earlier life of this process took is not taken again. */
  async collectOfJob(
    caller: Caller,
    job: StoredJob,
    of: { readonly patterns: readonly string[]; readonly ttlMs: number; readonly signal: AbortSignal },
  ): Promise<Collected> {
    const { store } = this.#context
    const sandbox = await usableSandbox(this.#context, caller, job.sandbox ?? '')
    const attempt = job.tries
    const known = await store.query((db) => listArtifactsOfTry(db, { job: job.id, attempt }))
    const source = { command: job.command, step: null, job: job.id, attempt, codeSha256: job.sha256 }
    return this.#collect(caller, sandbox, { ...of, source, known })
  }

  async upload(
    caller: Caller,
    of: {
      readonly name: string
      readonly agent?: string | undefined
      readonly ttlMs: number
      /** As the caller says; undefined when it does not. */
      readonly size: number | undefined
      readonly bytes: AsyncIterable<Buffer>
    },
  ): Promise<Artifact> {
    const { guardian, artifactBounds, dataPlane } = this.#context
    const { tenant, actor } = caller.principal
    const agent = await this.#agentOf(caller, of.agent)
    const what = { point: 'artifact.upload', payload: { name: of.name, bytes: of.size ?? null } } as const
    const operation = { kind: 'artifact', action: 'upload', name: of.name, bytes: of.size ?? null, count: 1 } as const
    const deed = await guardian.pass(caller, deedOf(caller, { id: null, tenant, agent }, what), operation)
    const row = await doRecorded(this.#context, deed, async () => {
      if ((of.size ?? 0) > artifactBounds.maxBytes) throw new AirlockError('artifact_too_large')
      const bytes = of.size ?? artifactBounds.maxBytes
      const owner = { ...NO_SOURCE, tenant, agent, name: of.name, ttlMs: of.ttlMs, bytes, createdBy: actor }
      const kept = await this.#keeper.keep(owner, async (ref) =>
        dataPlane.artifacts.put(ref, { bytes: of.bytes, maxBytes: bytes }),
      )
      return { value: kept, payload: { artifact: kept.id, bytes: kept.size, sha256: kept.sha256 } }
    })
    return toArtifact(row)
  }

  async list(caller: Caller, asked: ListArtifacts): Promise<Page<Artifact>> {
    const { principal } = caller
    const { agent, cursor: before, limit, ...rest } = asked
    if (agent !== undefined && !mayUseAgent(principal, agent)) return { items: [], nextCursor: null }
    const agents = agent === undefined ? principal.agents : [agent]
    const filter = { ...rest, tenant: principal.tenant, agents, before, limit: limit + 1 }
    return toPage(await this.#context.store.query((db) => listArtifacts(db, filter)), limit, toArtifact)
  }

  async get(caller: Caller, id: string): Promise<Artifact> {
    return toArtifact(await this.#owned(caller, id))
  }

  async download(caller: Caller, id: string): Promise<ReadableArtifact> {
    const row = await this.#owned(caller, id)
    await this.#assertHere(row)
    return this.#readable(caller, row, {})
  }

  /** As a job that gets it as a file: whole. */
  async read(caller: Caller, id: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const file = await this.download(caller, id)
    const { artifact } = file
    return artifact.size === 0 ? nothing() : file.open({ from: 0, to: artifact.size - 1 }, signal)
  }

  /** Throws unless the caller may have it, and it is on this node. */
  async assertReadable(caller: Caller, id: string): Promise<void> {
    await this.#assertHere(await this.#owned(caller, id))
  }

  async link(caller: Caller, id: string, { expiresInMs }: LinkArtifactBody): Promise<ArtifactLink> {
    const { guardian, clock, artifactLinks } = this.#context
    const row = await this.#owned(caller, id)
    await this.#assertHere(row)
    const expiresAt = Math.min(clock.now() + expiresInMs, row.expiresAt)
    const payload = { artifact: id, name: row.name, expiresAt: toTime(expiresAt) }
    const about = { kind: 'artifact', action: 'link', name: row.name, bytes: row.size, count: 1 } as const
    const deed = await guardian.pass(caller, this.#deed(caller, row, { point: 'artifact.link', payload }), about)
    return doRecorded(this.#context, deed, async () => {
      const token = artifactLinks.sign({ artifact: id, expiresAt, by: caller.principal.actor })
      return { value: { url: `${await this.#url()}/v1/artifact-links/${token}`, expiresAt: toTime(expiresAt) } }
    })
  }

  /** A link is as good as the key that made it: revoking that, or removing the artifact, ends it. */
  async downloadLinked(token: string, requestId: string): Promise<ReadableArtifact> {
    const { store, clock, artifactLinks } = this.#context
    const { artifact, by } = artifactLinks.verify(token, clock.now())
    const row = await store.query((db) => findArtifact(db, artifact))
    if (!row || row.expiresAt <= clock.now() || !(await this.#isGoodMaker(by)))
      throw new AirlockError('artifact_link_invalid')
    await this.#assertHere(row)
    const { tenant, agent } = row
    const principal = { actor: by, tenant, role: 'auditor', agents: [agent], platform: false } as const
    const readable = await this.#readable({ principal, requestId }, row, { link: true })
    return { ...readable, open: async (part, signal) => this.#linked.open(tenant, () => readable.open(part, signal)) }
  }

  /** It reduces, so it does not wait for evidence. */
  async remove(caller: Caller, id: string): Promise<void> {
    const { audit } = this.#context
    const row = await this.#owned(caller, id)
    await this.#assertHere(row)
    const payload = { artifact: id, name: row.name, sha256: row.sha256 }
    const deed = this.#deed(caller, row, { point: 'artifact.remove', payload })
    audit.note({ ...deed, status: 'requested' })
    await this.#keeper.remove(row)
    audit.note({ ...deed, status: 'done' })
  }

  async #collect(
    caller: Caller,
    sandbox: StoredSandbox,
    of: {
      readonly patterns: readonly string[]
      readonly ttlMs: number
      readonly signal: AbortSignal
      readonly known: readonly StoredArtifact[]
      readonly source: Pick<StoredArtifact, 'command' | 'step' | 'job' | 'attempt'> & {
        readonly codeSha256: string | null
      }
    },
  ): Promise<Collected> {
    const { patterns, ttlMs, signal, known } = of
    const { codeSha256, ...source } = of.source
    const { tenant, agent } = sandbox
    const { command, step, job } = source
    const payload = { patterns: [...patterns], command, step, job }
    const asked = deedOf(caller, sandbox, { point: 'artifact.collect', payload })
    const deed = await this.#context.guardian.pass(caller, asked)
    const owner = {
      ...source,
      tenant,
      agent,
      ttlMs,
      sandbox: sandbox.id,
      provenance: provenanceOf(sandbox, codeSha256),
      createdBy: caller.principal.actor,
    }
    await this.#context.audit.require({ ...deed, status: 'requested' })
    const collection = { caller, deed, sandbox: sandbox.id, patterns, known, owner, signal }
    const collected = await new Collection(this.#context, this.#keeper, collection).run()
    this.#recordCollected(deed, collected)
    return collected
  }

  #recordCollected(deed: Governed, collected: Collected): void {
    const said = saying(deed, collectedPayload(collected))
    const { error } = collected
    if (error === undefined) this.#context.audit.note({ ...said, status: 'done' })
    else this.#context.audit.note({ ...said, status: 'failed', error: describeError(error) })
  }

  async #readable(caller: Caller, row: StoredArtifact, more: { readonly link?: boolean }): Promise<ReadableArtifact> {
    const { guardian, audit, dataPlane } = this.#context
    const payload = { artifact: row.id, name: row.name, sha256: row.sha256, ...more }
    const about = { kind: 'artifact', action: 'download', name: row.name, bytes: row.size, count: 1 } as const
    const deed = await guardian.pass(caller, this.#deed(caller, row, { point: 'artifact.download', payload }), about)
    return {
      artifact: toArtifact(row),
      open: async (part, signal) => {
        const whole = part.from === 0 && part.to === row.size - 1
        const said = whole ? deed : saying(deed, { from: part.from, to: part.to })
        await audit.require({ ...said, status: 'requested' })
        try {
          return this.#recorded(said, await dataPlane.artifacts.read(row, { ...part, signal }))
        } catch (error) {
          audit.note({ ...said, status: 'failed', error: describeError(error) })
          throw error
        }
      },
    }
  }

  async *#recorded(deed: Governed, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const { audit, clock } = this.#context
    const startedAt = clock.now()
    const counted = countBytes(bytes)
    let failure: unknown = new AirlockError('timeout', 'The reader left.')
    try {
      yield* counted.bytes
      failure = undefined
    } catch (error) {
      failure = error
      throw error
    } finally {
      const said = { ...saying(deed, { bytes: counted.count() }), durationMs: clock.now() - startedAt }
      if (failure === undefined) audit.note({ ...said, status: 'done' })
      else audit.note({ ...said, status: 'failed', error: describeError(failure) })
    }
  }

  #deed(caller: Caller, row: StoredArtifact, what: Pick<Deed, 'point' | 'payload'>): Deed {
    return deedOf(caller, { id: row.sandbox, tenant: row.tenant, agent: row.agent }, what)
  }

  /** Not yours is not found, and neither is what has expired. */
  async #owned(caller: Caller, id: string): Promise<StoredArtifact> {
    const { store, clock } = this.#context
    const row = await store.query((db) => findArtifact(db, id))
    if (!row || !isOwned(caller.principal, row) || row.expiresAt <= clock.now())
      throw new AirlockError('artifact_not_found')
    return row
  }

  async #assertHere(row: StoredArtifact): Promise<void> {
    const { store, node } = this.#context
    if (row.node === node.id) return
    const owner = await store.query((db) => findNode(db, row.node))
    const options = owner && owner.url !== '' ? { hint: `Ask ${owner.url}.` } : {}
    throw new AirlockError('wrong_node', `The artifact is on another node, ${row.node}.`, options)
  }

  async #agentOf(caller: Caller, named: string | undefined): Promise<string> {
    const { principal } = caller
    const agent = actingAgent(principal, named)
    const { tenant } = principal
    const row = mayUseAgent(principal, agent)
      ? await this.#context.store.query((db) => findAgent(db, { tenant, agent }))
      : undefined
    if (!row) throw new AirlockError('agent_not_found')
    if (row.state === 'suspended') throw new AirlockError('agent_suspended')
    return agent
  }

  /** Hash of what made the files. Throws when there is no such command or step in the sandbox. */
  async #codeOf(
    sandbox: string,
    { command, step }: { readonly command: string | null; readonly step: string | null },
  ): Promise<string | null> {
    const { store } = this.#context
    if (command !== null) {
      const row = await store.query((db) => findCommand(db, { sandbox, command }))
      if (!row) throw new AirlockError('command_not_found')
      return createHash('sha256').update(JSON.stringify(row.argv)).digest('hex')
    }
    if (step === null) return null
    const row = await store.query((db) => findStepOf(db, { sandbox, step }))
    if (!row) throw new AirlockError('step_not_found')
    return row.codeHash
  }

  async #isGoodMaker(actor: string): Promise<boolean> {
    const { store, clock } = this.#context
    if (!actor.startsWith('key:')) return true
    const key = await store.query((db) => findApiKey(db, actor.slice('key:'.length)))
    return key?.revokedAt === null && (key.expiresAt === null || key.expiresAt > clock.now())
  }

  async #url(): Promise<string> {
    const { store, node } = this.#context
    return (await store.query((db) => findNode(db, node.id)))?.url ?? ''
  }
}

const NO_SOURCE = { sandbox: null, command: null, step: null, job: null, attempt: null, provenance: null } as const

async function* nothing(): AsyncGenerator<Buffer> {
  // An empty artifact has no bytes.
}
