import {
  AirlockError,
  createSandboxBody,
  DEFAULT_AGENT,
  DEFAULTS,
  SANDBOX_STATES,
  type Command,
  type CommandEvent,
  type Connection,
} from '@airlock/contract'
import type {
  AuditChain,
  Backtest,
  AuditRecord,
  CreatedSandbox,
  CreateSandboxBody,
  CreateSessionBody,
  FileOperation,
  RunCommandBody,
  RunStepBody,
} from '@airlock/contract'
import type {
  QuarantinedHead,
  Sandbox,
  SandboxState,
  Session,
  SignalName,
  SignedHead,
  SomeLimits,
} from '@airlock/contract'
import type { Step, StepEvent, Template, TemplateEvent, TemplateSpec } from '@airlock/contract'
import { newId } from '@airlock/std'
import type { TarSummary } from '@airlock/std/tar'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { memoryDir } from '../../../../../test/support/memory-dir.ts'
import type { Caller, Page } from '../../app/caller.ts'
import type { CommandRef } from '../../commands/command-ref.ts'
import type { FileAnswer } from '../../nodes/data-plane.ts'
import type { Ready } from '../../nodes/readiness.ts'
import type { ListSandboxes } from '../../sandboxes/sandboxes.ts'
import type { ListSessions } from '../../sessions/sessions.ts'
import type { StepRef } from '../../sessions/steps.ts'
import { changedLimits } from '../../sandboxes/fill-limits.ts'
import { packDirectory, unpackInto } from './test-archive.ts'
import { remove, rethrowFileError, stat } from './test-files.ts'
import { TestArtifacts } from './test-artifacts.ts'
import { TestCommand } from './test-command.ts'
import { TestJobs } from './test-jobs.ts'
import { TestSessions } from './test-sessions.ts'
import { TestTemplates } from './test-templates.ts'

/**
 * For tests of the HTTP edge, the SDK and the CLI only: a core without isolation, tenants or evidence. Its sandboxes are
 * temporary directories and its commands are processes of this user, so that bytes, signals and exits are real.
 */
export class TestCore {
  readonly sandboxes = new Map<string, Sandbox>()
  readonly jobs = new TestJobs()
  readonly artifacts = new TestArtifacts()
  readonly evidence: { records: AuditRecord[]; lines: string[]; head: SignedHead; publicKey: string }
  /** The last image that was imported, as it came. */
  imported: Uint8Array = new Uint8Array()
  readonly #sessions = new TestSessions()
  readonly #templates = new TestTemplates()
  readonly #commands = new Map<string, TestCommand>()
  readonly #roots = new Map<string, string>()
  readonly #home = mkdtemp(join(memoryDir(), 'airlock-test-core-'))
  ready: Ready = { ready: true, warnings: [] }

  constructor() {
    const head = { tenant: 'default', seq: 0, hash: '0'.repeat(64), ts: now(), keyId: 'none', signature: '' }
    this.evidence = { records: [], lines: [], head, publicKey: '' }
  }

  async createSandbox(_caller: Caller, body: CreateSandboxBody): Promise<CreatedSandbox> {
    this.#templates.get(body.template)
    if (body.name !== undefined && this.#living(body.name)) throw new AirlockError('name_taken')
    const id = newId('sbx')
    const root = join(await this.#home, id)
    await mkdir(root)
    this.#roots.set(id, root)
    const sandbox = newSandbox(id, body)
    this.sandboxes.set(id, sandbox)
    return created(sandbox)
  }

  async getOrCreateSandbox(
    caller: Caller,
    body: CreateSandboxBody & { readonly name: string },
  ): Promise<CreatedSandbox> {
    const living = this.#living(body.name)
    return living ? created(living) : this.createSandbox(caller, body)
  }

  async listSandboxes(_caller: Caller, query: ListSandboxes): Promise<Page<Sandbox>> {
    const state = query.state ?? 'active'
    const matches = [...this.sandboxes.values()].filter(
      (one) =>
        (state === 'all' || one.state === state) &&
        (query.name === undefined || one.name === query.name) &&
        Object.entries(query.labels).every(([key, value]) => one.labels[key] === value),
    )
    const from = Number(query.cursor ?? 0)
    const next = from + query.limit
    const items = matches.toReversed().slice(from, next)
    return { items, nextCursor: next < matches.length ? String(next) : null }
  }

  async getSandbox(_caller: Caller, id: string): Promise<Sandbox> {
    const found = this.sandboxes.get(id)
    if (!found) throw new AirlockError('sandbox_not_found')
    return found
  }

  async connectSandbox(caller: Caller, id: string): Promise<Connection> {
    const { id: sandbox, agent, generation } = await this.#active(caller, id)
    const [socket, tokenFile] = ['/run/airlock/airlock.sock', '/run/airlock/token']
    return { sandbox, agent, generation, socket, tokenFile, env: {}, scopes: ['self'], expiresAt: later(600_000) }
  }

  async extendSandbox(caller: Caller, id: string, ttlMs: number | undefined): Promise<Sandbox> {
    const sandbox = await this.#active(caller, id)
    return this.#change({ ...sandbox, expiresAt: later(ttlMs ?? sandbox.ttlMs) })
  }

  async changeLimits(caller: Caller, id: string, asked: SomeLimits): Promise<Sandbox> {
    const sandbox = await this.#active(caller, id)
    return this.#change({ ...sandbox, limits: changedLimits(sandbox.limits, asked) })
  }

  async pauseSandbox(caller: Caller, id: string): Promise<Sandbox> {
    return this.#change({ ...(await this.#active(caller, id)), state: 'paused', pausedAt: now(), pausedBy: 'request' })
  }

  async resumeSandbox(caller: Caller, id: string): Promise<Sandbox> {
    return this.#change({ ...(await this.getSandbox(caller, id)), state: 'active', pausedAt: null, pausedBy: null })
  }

  async terminateSandbox(caller: Caller, id: string): Promise<Sandbox> {
    const sandbox = await this.getSandbox(caller, id)
    if (sandbox.state === 'stopped') return sandbox
    for (const command of this.#commands.values()) if (command.state.sandbox === id) command.kill('SIGKILL')
    for (const session of this.#sessions.all.values()) if (session.sandbox === id) this.#sessions.terminate(session.id)
    await rm(this.#roots.get(id) ?? '', { recursive: true, force: true })
    return this.#change({ ...sandbox, state: 'stopped', endedAt: now(), endReason: 'terminated' })
  }

  async runCommand(caller: Caller, id: string, body: RunCommandBody): Promise<Command> {
    await this.#active(caller, id)
    const command = await TestCommand.start(id, this.#roots.get(id) ?? '', body)
    this.#commands.set(command.state.id, command)
    return command.state
  }

  async listCommands(caller: Caller, id: string): Promise<Page<Command>> {
    await this.getSandbox(caller, id)
    const items = [...this.#commands.values()].map((one) => one.state).filter((one) => one.sandbox === id)
    return { items: items.toReversed(), nextCursor: null }
  }

  async getCommand(_caller: Caller, of: CommandRef): Promise<Command> {
    return this.#command(of).state
  }

  commandEvents(
    _caller: Caller,
    of: CommandRef,
    options: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<CommandEvent> {
    return this.#command(of).events(options)
  }

  async fullCommandOutput(_caller: Caller, of: CommandRef): Promise<never> {
    this.#command(of)
    throw new AirlockError('output_not_kept')
  }

  async signalCommand(_caller: Caller, of: CommandRef, signal: SignalName): Promise<void> {
    if (!this.#command(of).kill(signal)) throw new AirlockError('command_ended')
  }

  async writeStdin(
    _caller: Caller,
    of: CommandRef,
    input: { readonly bytes: AsyncIterable<Buffer>; readonly end: boolean },
  ): Promise<void> {
    await this.#command(of).write(input)
  }

  async readFile(
    caller: Caller,
    id: string,
    file: { readonly path: string; readonly signal: AbortSignal },
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }> {
    const path = await this.#path(caller, id, file.path)
    const { size, ...entry } = await stat(path, file.path)
    if (entry.kind === 'directory') throw new AirlockError('is_a_directory')
    return { size, bytes: createReadStream(path, { signal: file.signal }) }
  }

  async writeFile(
    caller: Caller,
    id: string,
    file: { readonly path: string; readonly append: boolean; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<number> {
    const path = await this.#path(caller, id, file.path)
    const out = createWriteStream(path, { flags: file.append ? 'a' : 'w' })
    await pipeline(file.bytes, out).catch(rethrowFileError)
    return out.bytesWritten
  }

  async readArchive(caller: Caller, id: string, of: { readonly path: string }): Promise<AsyncIterable<Buffer>> {
    const path = await this.#path(caller, id, of.path)
    if ((await stat(path, of.path)).kind !== 'directory') throw new AirlockError('not_a_directory')
    return packDirectory(path)
  }

  async writeArchive(
    caller: Caller,
    id: string,
    of: { readonly path: string; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<TarSummary> {
    return unpackInto(await this.#path(caller, id, of.path), of.bytes)
  }

  async fileOperation(caller: Caller, id: string, operation: FileOperation): Promise<FileAnswer> {
    const at = async (path: string): Promise<string> => this.#path(caller, id, path)
    switch (operation.op) {
      case 'file.stat':
        return stat(await at(operation.path), operation.path)
      case 'file.list': {
        const names = await readdir(await at(operation.path)).catch(rethrowFileError)
        const kept = names.toSorted().slice(0, operation.limit)
        const root = await at(operation.path)
        const entries = await Promise.all(kept.map((name) => stat(join(root, name), join(operation.path, name))))
        return { entries, truncated: names.length > kept.length }
      }
      case 'file.mkdir':
        await mkdir(await at(operation.path), { recursive: operation.parents }).catch(rethrowFileError)
        return undefined
      case 'file.move':
        await rename(await at(operation.from), await at(operation.to)).catch(rethrowFileError)
        return undefined
      case 'file.remove':
        return remove(await at(operation.path), operation.recursive).catch(rethrowFileError)
    }
  }

  async createSession(caller: Caller, body: CreateSessionBody): Promise<Session> {
    const { sandbox, create } = body
    if (sandbox !== undefined)
      return this.#sessions.create(body, { id: (await this.#active(caller, sandbox)).id, owned: false })
    const made = await this.createSandbox(caller, create ?? createSandboxBody.parse({}))
    return this.#sessions.create(body, { id: made.id, owned: true })
  }

  async listSessions(_caller: Caller, query: ListSessions): Promise<Page<Session>> {
    return this.#sessions.list(query)
  }

  async getSession(_caller: Caller, id: string): Promise<Session> {
    return this.#sessions.get(id)
  }

  async interruptSession(_caller: Caller, id: string, step?: string): Promise<void> {
    this.#sessions.interrupt(id, step)
  }

  async restartSession(_caller: Caller, id: string): Promise<Session> {
    return this.#sessions.restart(id)
  }

  async terminateSession(caller: Caller, id: string): Promise<Session> {
    const session = this.#sessions.terminate(id)
    if (session.ownsSandbox) await this.terminateSandbox(caller, session.sandbox)
    return session
  }

  async runStep(_caller: Caller, id: string, body: RunStepBody): Promise<Step> {
    return this.#sessions.run(id, this.#roots.get(this.#sessions.get(id).sandbox) ?? '', body)
  }

  async listSteps(_caller: Caller, id: string): Promise<Page<Step>> {
    return this.#sessions.steps(id)
  }

  async getStep(_caller: Caller, of: StepRef): Promise<Step> {
    return this.#sessions.step(of).state
  }

  stepEvents(
    _caller: Caller,
    of: StepRef,
    options: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<StepEvent> {
    return this.#sessions.events(of, options)
  }

  async listTemplates(): Promise<readonly Template[]> {
    return [...this.#templates.templates.values()]
  }

  async getTemplate(_caller: Caller, name: string): Promise<Template> {
    return this.#templates.get(name)
  }

  async putTemplate(_caller: Caller, name: string, spec: TemplateSpec): Promise<Template> {
    return this.#templates.put(name, spec)
  }

  buildTemplate(_caller: Caller, name: string): AsyncIterable<TemplateEvent> {
    return this.#templates.build(name)
  }

  async importTemplate(_caller: Caller, name: string, image: AsyncIterable<Buffer>): Promise<Template> {
    const { template, tar } = await this.#templates.import(name, image)
    this.imported = tar
    return template
  }

  async removeTemplate(_caller: Caller, name: string): Promise<void> {
    this.#templates.remove(name)
  }

  async auditEvents(): Promise<Page<AuditRecord>> {
    return { items: this.evidence.records, nextCursor: null }
  }

  async auditExport(): Promise<AsyncIterable<string>> {
    const { lines } = this.evidence
    return (async function* () {
      yield* lines
    })()
  }

  async backtestPolicy(): Promise<Backtest> {
    return { replayed: 0, changed: 0, partial: 0, changes: [], examples: [], truncated: false }
  }

  async auditQuarantine(_caller: Caller, tenant: string): Promise<QuarantinedHead> {
    const quarantined = { to: 2, bytes: 1, sha256: '0'.repeat(64), reason: 'a test', by: 'key:test' }
    return { ...this.evidence.head, tenant, quarantined }
  }

  async auditChains(): Promise<readonly AuditChain[]> {
    return []
  }

  async auditHead(): Promise<{ readonly head: SignedHead; readonly publicKey: string }> {
    return { head: this.evidence.head, publicKey: this.evidence.publicKey }
  }

  async counts(): Promise<Readonly<Record<SandboxState, number>>> {
    const counts = { creating: 0, active: 0, paused: 0, stopping: 0, stopped: 0, error: 0 }
    for (const state of SANDBOX_STATES)
      counts[state] = [...this.sandboxes.values()].filter((one) => one.state === state).length
    return counts
  }

  async dispose(): Promise<void> {
    await this.jobs.dispose()
    this.#sessions.dispose()
    for (const command of this.#commands.values()) command.kill('SIGKILL')
    await rm(await this.#home, { recursive: true, force: true })
  }

  #living(name: string): Sandbox | undefined {
    return [...this.sandboxes.values()].find((one) => one.name === name && one.state === 'active')
  }

  async #active(caller: Caller, id: string): Promise<Sandbox> {
    const sandbox = await this.getSandbox(caller, id)
    if (sandbox.state !== 'active') throw new AirlockError('sandbox_ended')
    return sandbox
  }

  #change(sandbox: Sandbox): Sandbox {
    this.sandboxes.set(sandbox.id, sandbox)
    return sandbox
  }

  #command(of: CommandRef): TestCommand {
    const found = this.#commands.get(of.command)
    if (!found || found.state.sandbox !== of.sandbox) throw new AirlockError('command_not_found')
    return found
  }

  async #path(caller: Caller, id: string, path: string): Promise<string> {
    await this.#active(caller, id)
    return join(this.#roots.get(id) ?? '', path.replace(/^\/workspace(?=\/|$)/, ''))
  }
}

function created(sandbox: Sandbox): CreatedSandbox {
  const { tenant, agent, limits, generation } = sandbox
  const { memoryBytes, diskBytes, cpus } = limits
  const limit = {
    sandboxes: 5,
    memoryBytes: 2 ** 31,
    diskBytes: 2 ** 33,
    cpus: 2,
    computeSecondsPerDay: 1000,
    dollarsPerDay: 1,
    modelCallsPerDay: 1000,
    modelTokensPerDay: 1_000_000,
  }
  const spent = { day: now().slice(0, 10), computeSeconds: 0, dollars: 0, modelCalls: 0, modelTokens: 0 }
  const budget = {
    tenant,
    agent,
    limits: limit,
    set: [],
    reserved: { sandboxes: 1, memoryBytes, diskBytes, cpus },
    spent,
  }
  return {
    ...sandbox,
    agentSnapshot: { state: 'connected', generation, approved: true, version: null, labels: {} },
    reserved: { reservation: 'rsv_test', limits, budget },
  }
}

function newSandbox(id: string, body: CreateSandboxBody): Sandbox {
  const limit = (key: 'memoryBytes' | 'cpus' | 'pids' | 'diskBytes' | 'inodes' | 'openFiles'): number =>
    body.limits[key] ?? DEFAULTS[key].default
  return {
    id,
    tenant: 'default',
    agent: body.agent ?? DEFAULT_AGENT,
    generation: 1,
    name: body.name ?? null,
    node: 'local',
    template: body.template,
    image: null,
    state: 'active',
    labels: body.labels,
    limits: {
      memoryBytes: limit('memoryBytes'),
      cpus: limit('cpus'),
      pids: limit('pids'),
      diskBytes: limit('diskBytes'),
      inodes: limit('inodes'),
      openFiles: limit('openFiles'),
      cpuSeconds: body.limits.cpuSeconds ?? null,
    },
    ttlMs: body.ttlMs,
    idleMs: body.idleMs,
    onIdle: body.onIdle,
    maxPausedMs: body.maxPausedMs,
    pausedAt: null,
    pausedBy: null,
    createdAt: now(),
    lastActiveAt: now(),
    expiresAt: later(body.ttlMs),
    endsAt: later(body.maxLifetimeMs),
    endedAt: null,
    endReason: null,
    error: null,
    mounts: [],
    doors: ['control'],
    models: [],
    modelLimits: { calls: null, tokens: null, dollars: null, concurrentCalls: 16 },
    isolation: null,
  }
}

function now(): string {
  return new Date().toISOString()
}

function later(ms: number): string {
  return new Date(Date.now() + ms).toISOString()
}
