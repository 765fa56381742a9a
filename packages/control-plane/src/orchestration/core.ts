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
  FileEntry,
  FileOperation,
  RunCommandBody,
  RunStepBody,
  Sandbox,
  SandboxState,
  Session,
  SomeLimits,
  SessionState,
  SignalName,
  QuarantinedHead,
  SignedHead,
  Step,
  StepEvent,
  Template,
  TemplateEvent,
  TemplateSpec,
} from '@airlock/contract'
import type { Asker } from '../admission/approvals.ts'

/** Who calls and by which request: known before anything else is. */
export type Caller = Asker

export interface Page<T> {
  readonly items: readonly T[]
  readonly nextCursor: string | null
}

/**
 * Everything a caller can have done, without a word of HTTP. Each method checks that the caller may (not yours is not
 * found), writes evidence, has its effect through the data plane, and throws `AirlockError` or answers a noun.
 */
export interface Core {
  createSandbox(caller: Caller, body: CreateSandboxBody): Promise<CreatedSandbox>
  getOrCreateSandbox(caller: Caller, body: CreateSandboxBody & { readonly name: string }): Promise<CreatedSandbox>
  listSandboxes(caller: Caller, query: ListSandboxes): Promise<Page<Sandbox>>
  getSandbox(caller: Caller, sandbox: string): Promise<Sandbox>
  /** Gives it a new token for its door, and answers what a program inside needs to use it. */
  connectSandbox(caller: Caller, sandbox: string, body: ConnectSandboxBody): Promise<Connection>
  extendSandbox(caller: Caller, sandbox: string, ttlMs: number | undefined): Promise<Sandbox>
  changeLimits(caller: Caller, sandbox: string, limits: SomeLimits): Promise<Sandbox>
  pauseSandbox(caller: Caller, sandbox: string): Promise<Sandbox>
  resumeSandbox(caller: Caller, sandbox: string): Promise<Sandbox>
  terminateSandbox(caller: Caller, sandbox: string, options: { readonly force: boolean }): Promise<Sandbox>

  /** Resolves once the command runs; `waitForCommand` and `commandEvents` follow it. */
  runCommand(caller: Caller, sandbox: string, body: RunCommandBody): Promise<Command>
  waitForCommand(caller: Caller, of: CommandRef, signal: AbortSignal): Promise<Command>
  listCommands(
    caller: Caller,
    sandbox: string,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Command>>
  getCommand(caller: Caller, of: CommandRef): Promise<Command>
  /** What was said from `from` on; with `follow`, until the command has ended and its output is complete. */
  commandEvents(
    caller: Caller,
    of: CommandRef,
    options: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncIterable<CommandEvent>
  /** All that it said, where that went over its cap; as long as it is kept, also when the sandbox is gone. */
  fullCommandOutput(
    caller: Caller,
    of: CommandRef,
    signal: AbortSignal,
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }>
  signalCommand(caller: Caller, of: CommandRef, signal: SignalName): Promise<void>
  writeStdin(
    caller: Caller,
    of: CommandRef,
    input: { readonly bytes: AsyncIterable<Buffer>; readonly end: boolean },
  ): Promise<void>

  readFile(
    caller: Caller,
    sandbox: string,
    file: { readonly path: string; readonly signal: AbortSignal },
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }>
  writeFile(
    caller: Caller,
    sandbox: string,
    file: { readonly path: string; readonly append: boolean; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<number>
  fileOperation(caller: Caller, sandbox: string, operation: FileOperation): Promise<FileAnswer>

  createSession(caller: Caller, body: CreateSessionBody): Promise<Session>
  listSessions(caller: Caller, query: ListSessions): Promise<Page<Session>>
  getSession(caller: Caller, session: string): Promise<Session>
  /** The step that runs, or the one that is named: that one alone, also before its turn. */
  interruptSession(caller: Caller, session: string, step?: string): Promise<void>
  restartSession(caller: Caller, session: string): Promise<Session>
  terminateSession(caller: Caller, session: string): Promise<Session>

  /** Resolves once the step is with the data plane, or at once when its id is known; `stepEvents` follows it. */
  runStep(caller: Caller, session: string, body: RunStepBody): Promise<Step>
  listSteps(
    caller: Caller,
    session: string,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Step>>
  getStep(caller: Caller, of: StepRef): Promise<Step>
  stepEvents(
    caller: Caller,
    of: StepRef,
    options: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncIterable<StepEvent>

  listTemplates(caller: Caller): Promise<readonly Template[]>
  getTemplate(caller: Caller, name: string): Promise<Template>
  putTemplate(caller: Caller, name: string, spec: TemplateSpec): Promise<Template>
  /** Ends with `ended` or throws; a build goes on when nobody listens any more. */
  buildTemplate(caller: Caller, name: string): AsyncIterable<TemplateEvent>
  importTemplate(caller: Caller, name: string, image: AsyncIterable<Buffer>): Promise<Template>
  removeTemplate(caller: Caller, name: string): Promise<void>

  auditEvents(caller: Caller, query: AuditQuery): Promise<Page<AuditRecord>>
  auditExport(caller: Caller, signal: AbortSignal): Promise<AsyncIterable<string>>
  auditHead(caller: Caller): Promise<{ readonly head: SignedHead; readonly publicKey: string }>
  /** The chains of the caller's tenant on all nodes. */
  auditQuarantine(caller: Caller, tenant: string): Promise<QuarantinedHead>
  auditChains(caller: Caller): Promise<readonly AuditChain[]>

  /** What a draft would have said to what was asked before, as far as the evidence tells. */
  backtestPolicy(caller: Caller, body: BacktestBody): Promise<Backtest>

  /** Whether sandboxes can be created now; the reason when not, and what will be one soon. */
  readiness(): Promise<Ready>
  /** Living sandboxes by state, for /metrics. */
  counts(): Promise<Readonly<Record<SandboxState, number>>>
}

export type Ready =
  | { readonly ready: true; readonly warnings: readonly ('host_disk_low' | 'evidence_broken')[] }
  | { readonly ready: false; readonly reason: string }

export interface CommandRef {
  readonly sandbox: string
  readonly command: string
}

export interface StepRef {
  readonly session: string
  readonly step: string
}

export interface ListSessions {
  readonly state?: SessionState | 'all' | undefined
  readonly sandbox?: string | undefined
  readonly agent?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

export interface ListSandboxes {
  readonly state?: SandboxState | 'all' | undefined
  readonly agent?: string | undefined
  readonly name?: string | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly limit: number
  readonly cursor?: string | undefined
}

/** `file.stat` answers an entry, `file.list` a listing, the others nothing. */
export type FileAnswer = FileEntry | { readonly entries: readonly FileEntry[]; readonly truncated: boolean } | undefined
