export type { AgentListOptions, Agents, ChangeOptions } from './agents.ts'
export type { Audit } from './audit.ts'
export type { Budgets } from './budgets.ts'
export { Airlock, type ListOptions, type SandboxPage, type Sandboxes } from './client.ts'
export { outputBytes, type CommandLine, type CommandOptions, type RunningCommand } from './command.ts'
export { stateDirectories } from './config.ts'
export { AirlockError, type ErrorCode } from './errors.ts'
export type { FileListing, SandboxFiles } from './files.ts'
export type { AddGrantOptions, Grants } from './grants.ts'
export type { CreateKeyOptions, KeyListOptions, Keys } from './keys.ts'
export { RichOutput, type Json, type MimeBundle } from './rich-output.ts'
export type { CreateOptions, Sandbox } from './sandbox.ts'
export type { Session, SessionListOptions, SessionOptions, Sessions } from './session.ts'
export type { SessionStep, StepCallbacks, StepOptions, StepResult } from './step.ts'
export type { ImageSource, ImportOptions, Templates } from './templates.ts'
export type { Tenants } from './tenants.ts'
export type { Usage } from './usage.ts'
export type { Bytes, TransportOptions } from './transport.ts'
export type {
  Agent,
  AgentState,
  ApiKey,
  AuditQuery,
  AuditRecord,
  Budget,
  Command,
  CommandEvent,
  CommandResult,
  FileEntry,
  Grant,
  Identity,
  Mount,
  NewApiKey,
  Runtime,
  Sandbox as SandboxData,
  SandboxState,
  Session as SessionData,
  SessionState,
  SetBudgetBody,
  SignalName,
  SignedHead,
  Step,
  StepError,
  StepEvent,
  StepStatus,
  Template,
  TemplateEvent,
  TemplateSpec,
  Tenant,
  UsageQuery,
  UsageReport,
  UsageRow,
} from './nouns.ts'
