import type { EvidenceKeeper, EvidenceReader } from '@airlock/audit'
import type {
  AuditChain,
  AuditQuery,
  AuditRecord,
  Backtest,
  BacktestBody,
  Command,
  CommandEvent,
  Connection,
  ConnectSandboxBody,
  CreatedSandbox,
  CreateSandboxBody,
  CreateSessionBody,
  FileOperation,
  RunCommandBody,
  RunStepBody,
  Sandbox,
  SandboxState,
  Session,
  SignalName,
  QuarantinedHead,
  SignedHead,
  SomeLimits,
  Template,
  TemplateEvent,
  TemplateSpec,
  Step,
  StepEvent,
} from '@airlock/contract'
import { auditQuarantine } from './audit-quarantine.ts'
import { auditChains, auditEvents, auditExport, auditHead } from './audit-reading.ts'
import { backtestPolicy } from './backtest.ts'
import { commandEvents } from './command-events.ts'
import type { Context } from './context.ts'
import type { Caller, CommandRef, Core, FileAnswer, ListSandboxes, ListSessions, Page, Ready, StepRef } from './core.ts'
import { extendSandbox } from './extend.ts'
import type { Lifecycle } from './lifecycle-parts.ts'
import { isEnded } from './lifecycle.ts'
import { toSandbox } from './nouns.ts'
import { assertHere, ownedSandbox, readableSandbox } from './owned-sandbox.ts'
import { resumeSandbox } from './resume.ts'
import { countSandboxes, getSandbox, listSandboxes } from './sandboxes.ts'

/** The core on this store and this node's data plane. It only asks whether we serve, and passes on. */
export class LocalCore implements Core {
  readonly #world: Context & Lifecycle & { readonly evidence: EvidenceReader & EvidenceKeeper }

  constructor(world: Context & Lifecycle & { readonly evidence: EvidenceReader & EvidenceKeeper }) {
    this.#world = world
  }

  async createSandbox(caller: Caller, body: CreateSandboxBody): Promise<CreatedSandbox> {
    return this.#world.creation.create(caller, body)
  }

  async getOrCreateSandbox(
    caller: Caller,
    body: CreateSandboxBody & { readonly name: string },
  ): Promise<CreatedSandbox> {
    return this.#world.creation.getOrCreate(caller, body)
  }

  async listSandboxes(caller: Caller, query: ListSandboxes): Promise<Page<Sandbox>> {
    return listSandboxes(this.#serving(), caller, query)
  }

  async getSandbox(caller: Caller, sandbox: string): Promise<Sandbox> {
    return getSandbox(this.#serving(), caller, sandbox)
  }

  async connectSandbox(caller: Caller, sandbox: string, body: ConnectSandboxBody): Promise<Connection> {
    return this.#serving().connections.connect(caller, sandbox, body)
  }

  async extendSandbox(caller: Caller, sandbox: string, ttlMs: number | undefined): Promise<Sandbox> {
    return extendSandbox(this.#serving(), caller, { sandbox, ttlMs })
  }

  async changeLimits(caller: Caller, sandbox: string, limits: SomeLimits): Promise<Sandbox> {
    return this.#serving().limitChanges.change(caller, sandbox, limits)
  }

  async pauseSandbox(caller: Caller, sandbox: string): Promise<Sandbox> {
    return toSandbox(await this.#serving().pauses.pause(caller, sandbox))
  }

  async resumeSandbox(caller: Caller, sandbox: string): Promise<Sandbox> {
    const world = this.#serving()
    const row = await readableSandbox(world, caller, sandbox)
    return toSandbox(await resumeSandbox(world, caller, { sandbox: row, why: 'request' }))
  }

  async terminateSandbox(caller: Caller, sandbox: string, options: { readonly force: boolean }): Promise<Sandbox> {
    const world = this.#serving()
    const row = await ownedSandbox(world.store, caller, sandbox)
    if (isEnded(row.state)) return toSandbox(row)
    await assertHere(world, row)
    const { principal, requestId } = caller
    const end = { reason: 'terminated', actor: principal.actor, requestId, force: options.force } as const
    return toSandbox(await world.termination.terminate(row.id, end))
  }

  async runCommand(caller: Caller, sandbox: string, body: RunCommandBody): Promise<Command> {
    return this.#serving().commands.run(caller, sandbox, body)
  }

  async waitForCommand(caller: Caller, of: CommandRef, signal: AbortSignal): Promise<Command> {
    return this.#serving().commands.wait(caller, of, signal)
  }

  async listCommands(
    caller: Caller,
    sandbox: string,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Command>> {
    return this.#serving().commands.list(caller, sandbox, page)
  }

  async getCommand(caller: Caller, of: CommandRef): Promise<Command> {
    return this.#serving().commands.get(caller, of)
  }

  commandEvents(
    caller: Caller,
    of: CommandRef,
    options: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncIterable<CommandEvent> {
    return commandEvents({ ...this.#serving(), ref: of }, caller, options)
  }

  async fullCommandOutput(
    caller: Caller,
    of: CommandRef,
    signal: AbortSignal,
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }> {
    return this.#serving().commands.fullOutput(caller, of, signal)
  }

  async signalCommand(caller: Caller, of: CommandRef, signal: SignalName): Promise<void> {
    await this.#serving().commands.signal(caller, of, signal)
  }

  async writeStdin(
    caller: Caller,
    of: CommandRef,
    input: { readonly bytes: AsyncIterable<Buffer>; readonly end: boolean },
  ): Promise<void> {
    await this.#serving().commands.writeStdin(caller, of, input)
  }

  async readFile(
    caller: Caller,
    sandbox: string,
    file: { readonly path: string; readonly signal: AbortSignal },
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }> {
    return this.#serving().files.read(caller, sandbox, file)
  }

  async writeFile(
    caller: Caller,
    sandbox: string,
    file: { readonly path: string; readonly append: boolean; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<number> {
    return this.#serving().files.write(caller, sandbox, file)
  }

  async fileOperation(caller: Caller, sandbox: string, operation: FileOperation): Promise<FileAnswer> {
    return this.#serving().files.operate(caller, sandbox, operation)
  }

  async createSession(caller: Caller, body: CreateSessionBody): Promise<Session> {
    return this.#serving().sessions.create(caller, body)
  }

  async listSessions(caller: Caller, query: ListSessions): Promise<Page<Session>> {
    return this.#serving().sessions.list(caller, query)
  }

  async getSession(caller: Caller, session: string): Promise<Session> {
    return this.#serving().sessions.get(caller, session)
  }

  async interruptSession(caller: Caller, session: string, step?: string): Promise<void> {
    await this.#serving().sessions.interrupt(caller, session, step)
  }

  async restartSession(caller: Caller, session: string): Promise<Session> {
    return this.#serving().sessions.restart(caller, session)
  }

  async terminateSession(caller: Caller, session: string): Promise<Session> {
    return this.#serving().sessions.terminate(caller, session)
  }

  async runStep(caller: Caller, session: string, body: RunStepBody): Promise<Step> {
    return this.#serving().steps.run(caller, session, body)
  }

  async listSteps(
    caller: Caller,
    session: string,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Step>> {
    return this.#serving().steps.list(caller, session, page)
  }

  async getStep(caller: Caller, of: StepRef): Promise<Step> {
    return this.#serving().steps.get(caller, of)
  }

  stepEvents(
    caller: Caller,
    of: StepRef,
    options: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncIterable<StepEvent> {
    return this.#serving().steps.events(caller, of, options)
  }

  async listTemplates(caller: Caller): Promise<readonly Template[]> {
    return this.#serving().templates.list(caller)
  }

  async getTemplate(caller: Caller, name: string): Promise<Template> {
    return this.#serving().templates.get(caller, name)
  }

  async putTemplate(caller: Caller, name: string, spec: TemplateSpec): Promise<Template> {
    return this.#serving().templates.put(caller, name, spec)
  }

  buildTemplate(caller: Caller, name: string): AsyncIterable<TemplateEvent> {
    return this.#serving().templates.build(caller, name)
  }

  async importTemplate(caller: Caller, name: string, image: AsyncIterable<Buffer>): Promise<Template> {
    return this.#serving().templates.import(caller, name, image)
  }

  async removeTemplate(caller: Caller, name: string): Promise<void> {
    await this.#serving().templates.remove(caller, name)
  }

  async auditEvents(caller: Caller, query: AuditQuery): Promise<Page<AuditRecord>> {
    return auditEvents(this.#serving(), caller, query)
  }

  async auditExport(caller: Caller, signal: AbortSignal): Promise<AsyncIterable<string>> {
    return auditExport(this.#serving(), caller, signal)
  }

  async auditHead(caller: Caller): Promise<{ readonly head: SignedHead; readonly publicKey: string }> {
    return auditHead(this.#serving(), caller)
  }

  async auditQuarantine(caller: Caller, tenant: string): Promise<QuarantinedHead> {
    return auditQuarantine(this.#serving(), caller, tenant)
  }

  async auditChains(caller: Caller): Promise<readonly AuditChain[]> {
    return auditChains(this.#serving(), caller)
  }

  async backtestPolicy(caller: Caller, body: BacktestBody): Promise<Backtest> {
    return backtestPolicy(this.#serving(), caller, body)
  }

  async readiness(): Promise<Ready> {
    const { reason, hostDisk, brokenChains } = this.#world.readiness
    if (reason !== undefined) return { ready: false, reason }
    const disk = hostDisk === 'low' ? (['host_disk_low'] as const) : []
    return { ready: true, warnings: brokenChains > 0 ? [...disk, 'evidence_broken'] : disk }
  }

  async counts(): Promise<Readonly<Record<SandboxState, number>>> {
    return countSandboxes(this.#world)
  }

  #serving(): Context & Lifecycle & { readonly evidence: EvidenceReader & EvidenceKeeper } {
    this.#world.readiness.assertServing()
    return this.#world
  }
}
