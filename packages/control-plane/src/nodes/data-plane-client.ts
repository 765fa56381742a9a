import {
  AirlockError,
  type DataPlaneHealth,
  dataPlaneHealth,
  DEFAULTS,
  type EndReason,
  type FileOperation,
  type FindCommitRequest,
  type FoundPath,
  foundPath,
  type FreezeRequest,
  frozenSandboxes,
  type FrozenSandboxes,
  guestResults,
  type Limits,
  limits,
  type LookAtPathRequest,
  type NodeCommand,
  nodeCommand,
  type NodeCommandSpec,
  nodeExport,
  type NodeExport,
  type NodeExportRequest,
  type NodeSandbox,
  nodeSandbox,
  type NodeSession,
  nodeSession,
  type NodeMetrics,
  nodeMetrics,
  type NodeSessionSpec,
  type NodeStepSpec,
  type NodeToken,
  type SignalName,
  startedSandbox,
  type StartedSandbox,
  stoppedSandbox,
  type StoppedSandbox,
  type WorktreeBase,
  worktreeBase,
  type WorktreeDiff,
  worktreeDiff,
} from '@airlock/contract'
import { deadline } from '@airlock/std'
import { type Address, FollowedCalls, type OutputItem, readOutput, WireClient } from '@airlock/wire'
import { z } from 'zod'
import type { CommandRef } from '../commands/command-ref.ts'
import { DataPlaneArtifactClient } from './data-plane-artifacts.ts'
import type { DataPlane, FileAnswer, SessionRef, Sized } from './data-plane.ts'
import { DataPlaneImageClient } from './data-plane-images.ts'

const SHORT_MS = 5_000
const GUEST_MS = 30_000
const START_MS = 60_000
const STOP_MS = 25_000
/** All files of a worktree are looked at, or all changes written. */
const WORKTREE_MS = 180_000
/** A disk may have to grow, or memory to be taken back. */
const LIMITS_MS = 120_000
/** A wait is asked again after this long, so that a data plane that forgot it is found out. */
const WAIT_MS = 60_000
/** No transfer outlives the sandbox that it is with. */
const TRANSFER_MS = DEFAULTS.maxLifetimeMs.max

/** A directory listing with the longest names fits. */
const MAX_JSON_BYTES = 64 * 1024 * 1024

const nothing = z.strictObject({})

/** The node of this host, by the calls of `contract/src/host/data-plane-api.ts` over a socket. */
export class DataPlaneClient implements DataPlane {
  readonly images: DataPlaneImageClient
  /** Bytes of artifacts, on this node. */
  readonly artifacts: DataPlaneArtifactClient
  readonly #http: WireClient
  readonly #followed: FollowedCalls

  constructor(address: Address) {
    const unavailable = (cause: unknown) => new AirlockError('data_plane_unavailable', undefined, { cause })
    const wire = { address, peer: 'data plane', unavailable }
    this.#http = new WireClient({ ...wire, maxJsonBytes: MAX_JSON_BYTES })
    this.#followed = new FollowedCalls(wire)
    this.images = new DataPlaneImageClient(this.#http)
    this.artifacts = new DataPlaneArtifactClient(this.#http)
  }

  async health(): Promise<DataPlaneHealth> {
    return this.#http.json({ method: 'GET', path: '/health', answerMs: SHORT_MS, again: 'same' }, dataPlaneHealth)
  }

  async list(): Promise<readonly NodeSandbox[]> {
    const schema = z.strictObject({ sandboxes: z.array(nodeSandbox) })
    const call = { method: 'GET', path: '/sandboxes', answerMs: SHORT_MS, again: 'same' } as const
    return (await this.#http.json(call, schema)).sandboxes
  }

  async metrics(): Promise<NodeMetrics> {
    const call = { method: 'GET', path: '/metrics', answerMs: GUEST_MS, again: 'same' } as const
    return this.#http.json(call, nodeMetrics)
  }

  async lookAtPath(asked: LookAtPathRequest): Promise<FoundPath> {
    const call = { method: 'POST', path: '/paths/look', json: asked, answerMs: GUEST_MS, again: 'same' } as const
    return this.#http.json(call, foundPath)
  }

  async start(permit: string): Promise<StartedSandbox> {
    const call = { method: 'POST', path: '/sandboxes', json: { permit }, answerMs: START_MS } as const
    return this.#http.json({ ...call, again: 'different' }, startedSandbox)
  }

  async giveToken(sandbox: string, json: NodeToken): Promise<void> {
    const call = {
      method: 'PUT',
      path: `/sandboxes/${sandbox}/token`,
      json,
      answerMs: GUEST_MS,
      again: 'same',
    } as const
    await this.#http.json(call, nothing)
  }

  async stop(sandbox: string, reason: EndReason | null): Promise<StoppedSandbox> {
    const path = reason === null ? `/sandboxes/${sandbox}` : `/sandboxes/${sandbox}?reason=${reason}`
    const call = { method: 'DELETE', path, answerMs: STOP_MS, again: 'same' } as const
    return this.#http.json(call, stoppedSandbox)
  }

  async pause(sandbox: string): Promise<void> {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/pause`, answerMs: GUEST_MS, again: 'same' } as const
    await this.#http.json(call, nothing)
  }

  async resume(sandbox: string): Promise<void> {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/resume`, answerMs: GUEST_MS, again: 'same' } as const
    await this.#http.json(call, nothing)
  }

  async changeLimits(sandbox: string, json: Limits): Promise<Limits> {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/limits`, json, answerMs: LIMITS_MS } as const
    return this.#http.json({ ...call, again: 'same' }, limits)
  }

  async freeze(scope: FreezeRequest): Promise<FrozenSandboxes['sandboxes']> {
    const call = { method: 'POST', path: '/freeze', json: scope, answerMs: GUEST_MS, again: 'same' } as const
    return (await this.#http.json(call, frozenSandboxes)).sandboxes
  }

  async run(sandbox: string, spec: NodeCommandSpec): Promise<NodeCommand> {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/commands`, json: spec, again: 'same' } as const
    return this.#http.json({ ...call, answerMs: GUEST_MS }, nodeCommand)
  }

  async command(of: CommandRef): Promise<NodeCommand> {
    return this.#http.json({ method: 'GET', path: commandPath(of), answerMs: SHORT_MS, again: 'same' }, nodeCommand)
  }

  async wait(of: CommandRef, signal: AbortSignal): Promise<NodeCommand | undefined> {
    const patience = AbortSignal.timeout(WAIT_MS)
    const path = `${commandPath(of)}/wait`
    const call = { method: 'GET', path, answerMs: 2 * WAIT_MS, again: 'same' } as const
    try {
      return await this.#http.json({ ...call, signal: AbortSignal.any([signal, patience]) }, nodeCommand)
    } catch (error) {
      if (patience.aborted && !signal.aborted) return undefined
      throw error
    }
  }

  async *output(
    of: CommandRef,
    options: { readonly from: number; readonly isRichWhole?: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<OutputItem> {
    const rich = options.isRichWhole === true ? '&rich=whole' : ''
    const response = await this.#http.stream({
      method: 'GET',
      path: `${commandPath(of)}/output?from=${options.from}${rich}`,
      answerMs: SHORT_MS,
      signal: deadline(TRANSFER_MS, options.signal),
      again: 'same',
    })
    yield* readOutput(this.#http.bytesOf(response))
  }

  async openSession(sandbox: string, spec: NodeSessionSpec): Promise<NodeSession> {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/sessions`, json: spec, again: 'same' } as const
    return this.#http.json({ ...call, answerMs: GUEST_MS }, nodeSession)
  }

  async interruptSession(of: SessionRef): Promise<void> {
    const call = { method: 'POST', path: `${sessionPath(of)}/interrupt`, answerMs: GUEST_MS } as const
    await this.#http.json({ ...call, again: 'same' }, nothing)
  }

  async restartSession(of: SessionRef): Promise<NodeSession> {
    const call = { method: 'POST', path: `${sessionPath(of)}/restart`, answerMs: GUEST_MS } as const
    return this.#http.json({ ...call, again: 'different' }, nodeSession)
  }

  async closeSession(of: SessionRef): Promise<void> {
    await this.#http.json({ method: 'DELETE', path: sessionPath(of), answerMs: GUEST_MS, again: 'same' }, nothing)
  }

  async runFollowed(sandbox: string, spec: NodeCommandSpec, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>> {
    return this.#followed.ask({ kind: 'command', sandbox, command: spec }, signal)
  }

  async step(of: SessionRef, spec: NodeStepSpec, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>> {
    return this.#followed.ask({ kind: 'step', ...of, step: spec }, signal)
  }

  async signal(of: CommandRef, name: SignalName): Promise<void> {
    const call = { method: 'POST', path: `${commandPath(of)}/signal`, json: { signal: name } } as const
    await this.#http.json({ ...call, answerMs: GUEST_MS, again: 'different' }, nothing)
  }

  async writeStdin(of: CommandRef, input: { bytes: AsyncIterable<Buffer>; end: boolean }): Promise<void> {
    const path = `${commandPath(of)}/stdin?end=${input.end}`
    const call = { method: 'POST', path, bytes: input.bytes, again: 'different' } as const
    await this.#http.json({ ...call, answerMs: TRANSFER_MS }, nothing)
  }

  async readFile(sandbox: string, file: { readonly path: string; readonly signal: AbortSignal }): Promise<Sized> {
    return this.#sized(filesPath(sandbox, { path: file.path }), file.signal)
  }

  async fullOutput(
    of: { readonly command: string; readonly bytes: number | undefined },
    signal: AbortSignal,
  ): Promise<Sized> {
    return this.#sized(`/outputs/${of.command}${of.bytes === undefined ? '' : `?bytes=${of.bytes}`}`, signal)
  }

  async writeFile(
    sandbox: string,
    file: { readonly path: string; readonly append: boolean; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<number> {
    const path = filesPath(sandbox, { path: file.path, mode: file.append ? 'append' : 'truncate' })
    const call = { method: 'PUT', path, bytes: file.bytes, answerMs: TRANSFER_MS, again: 'different' } as const
    return (await this.#http.json(call, z.strictObject({ bytes: z.int() }))).bytes
  }

  async readArchive(
    sandbox: string,
    of: { readonly path: string; readonly signal: AbortSignal },
  ): Promise<AsyncIterable<Buffer>> {
    const path = archivePath(sandbox, of.path)
    const signal = deadline(TRANSFER_MS, of.signal)
    return this.#http.bytesOf(
      await this.#http.stream({ method: 'GET', path, answerMs: GUEST_MS, signal, again: 'same' }),
    )
  }

  async writeArchive(
    sandbox: string,
    of: { readonly path: string; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<void> {
    const path = archivePath(sandbox, of.path)
    const call = { method: 'PUT', path, bytes: of.bytes, answerMs: TRANSFER_MS, again: 'different' } as const
    await this.#http.json(call, z.strictObject({ bytes: z.int() }))
  }

  async file(sandbox: string, operation: FileOperation): Promise<FileAnswer> {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/files`, json: operation, answerMs: GUEST_MS } as const
    const ask = <T>(schema: z.ZodType<T>) => this.#http.json({ ...call, again: 'different' }, schema)
    if (operation.op === 'file.stat') return toEntry(await ask(guestResults['file.stat']))
    if (operation.op !== 'file.list') return void (await ask(guestResults[operation.op]))
    const listing = await ask(guestResults['file.list'])
    return { entries: listing.entries.map(toEntry), truncated: listing.truncated }
  }

  async #sized(path: string, signal: AbortSignal): Promise<Sized> {
    const until = deadline(TRANSFER_MS, signal)
    const response = await this.#http.stream({ method: 'GET', path, answerMs: GUEST_MS, signal: until, again: 'same' })
    const size = Number(response.headers['x-size'])
    if (Number.isSafeInteger(size)) return { size, bytes: this.#http.bytesOf(response) }
    response.destroy()
    throw new AirlockError('internal', 'The data plane did not say how many bytes there are.')
  }

  async findCommit(json: FindCommitRequest): Promise<WorktreeBase> {
    const call = { method: 'POST', path: '/worktrees/commit', json, answerMs: GUEST_MS, again: 'same' } as const
    return this.#http.json(call, worktreeBase)
  }

  /** What a sandbox changed in its worktree so far, copied. */
  async sealWorktree(sandbox: string): Promise<WorktreeDiff> {
    const path = `/sandboxes/${sandbox}/worktree/seal`
    return this.#http.json({ method: 'POST', path, answerMs: WORKTREE_MS, again: 'same' }, worktreeDiff)
  }

  async sealedWorktree(sandbox: string, seal: string): Promise<WorktreeDiff> {
    const path = `/sandboxes/${sandbox}/worktree?seal=${seal}`
    return this.#http.json({ method: 'GET', path, answerMs: GUEST_MS, again: 'same' }, worktreeDiff)
  }

  async worktreePatch(
    sandbox: string,
    seal: string,
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }> {
    return this.#sized(`/sandboxes/${sandbox}/worktree/patch?seal=${seal}`, AbortSignal.timeout(TRANSFER_MS))
  }

  async exportWorktree(sandbox: string, json: NodeExportRequest): Promise<NodeExport> {
    const path = `/sandboxes/${sandbox}/worktree/export`
    return this.#http.json({ method: 'POST', path, json, answerMs: WORKTREE_MS, again: 'same' }, nodeExport)
  }

  close(): void {
    this.#http.close()
    this.#followed.close()
  }
}

function sessionPath(of: SessionRef): string {
  return `/sandboxes/${of.sandbox}/sessions/${of.session}`
}

function commandPath(of: CommandRef): string {
  return `/sandboxes/${of.sandbox}/commands/${of.command}`
}

function filesPath(sandbox: string, query: Readonly<Record<string, string>>): string {
  return `/sandboxes/${sandbox}/files?${new URLSearchParams(query).toString()}`
}

function archivePath(sandbox: string, path: string): string {
  return `/sandboxes/${sandbox}/archive?${new URLSearchParams({ path }).toString()}`
}

function toEntry({ modifiedMs, target, ...entry }: z.infer<(typeof guestResults)['file.stat']>) {
  // A date that JavaScript cannot hold would throw, and user code may set any.
  const modifiedAt = new Date(Math.min(Math.max(modifiedMs, -MAX_DATE_MS), MAX_DATE_MS)).toISOString()
  return { ...entry, modifiedAt, ...(target === undefined ? {} : { target }) }
}

/** The year 9999: later years are not ISO dates. */
const MAX_DATE_MS = 253_402_300_799_999
