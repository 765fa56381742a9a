import type { RouteOutput } from '@airlock/contract'

/**
 * The types of the contract that callers see. They are inferred from schemas; `npm run build:packages` writes each of
 * them out in full, so that whoever installs the SDK needs neither the contract nor its schema library.
 */
export type {
  Backtest,
  Conditions,
  Decision,
  Effect,
  Evaluation,
  GuardianStatus,
  MatchedRule,
  Operation,
  Point,
  Policy,
  PolicyCheck,
  PolicyDocument,
  PolicyDocumentInput,
  PolicyScope,
  PolicyVersion,
  Question,
  Risk,
  RuleInForce,
} from '@airlock/contract'

/**
 * The types of the contract that callers see. They are inferred from schemas; `npm run build:packages` writes each of
 * them out in full, so that whoever installs the SDK needs neither the contract nor its schema library.
 */
export type {
  AddGrantBody,
  Agent,
  AgentState,
  AgentSummary,
  ApiKey,
  Approval,
  ApprovalDetail,
  ApprovalEvent,
  ApprovalScope,
  ApprovalState,
  AuditChain,
  AuditEvent,
  AuditQuery,
  AuditRecord,
  AuditStats,
  Budget,
  Command,
  CommandEvent,
  CommandResult,
  Connection,
  CreatedSandbox,
  CreateKeyBody,
  CreateSandboxBody,
  CreateSessionBody,
  EventPage,
  FileEntry,
  Grant,
  KilledSandbox,
  KillReport,
  KillScope,
  Mount,
  NewApiKey,
  NewWebhook,
  RegisterAgentBody,
  UpdateAgentBody,
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
  StreamedEvent,
  Template,
  TemplateEvent,
  TemplateSpec,
  Tenant,
  UsageQuery,
  UsageReport,
  UsageRow,
  Webhook,
  WebhookEvent,
} from '@airlock/contract'

/** Who the server takes a caller for. */
export type Identity = RouteOutput<'whoami'>
