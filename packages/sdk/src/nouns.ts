import type { RouteOutput } from '@airlock/contract'

/**
 * The types of the contract that callers see. They are inferred from schemas; `npm run build:packages` writes each of
 * them out in full, so that whoever installs the SDK needs neither the contract nor its schema library.
 */
export type {
  AddGrantBody,
  Agent,
  AgentState,
  ApiKey,
  AuditChain,
  AuditQuery,
  AuditRecord,
  Budget,
  Command,
  CommandEvent,
  CommandResult,
  CreateKeyBody,
  CreateSandboxBody,
  CreateSessionBody,
  FileEntry,
  Grant,
  Mount,
  NewApiKey,
  RegisterAgentBody,
  Runtime,
  Sandbox,
  SandboxState,
  Session,
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
} from '@airlock/contract'

/** Who the server takes a caller for. */
export type Identity = RouteOutput<'whoami'>
