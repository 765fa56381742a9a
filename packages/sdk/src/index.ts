export type { AgentListOptions, Agents, ChangeOptions } from './agents.ts'
export type { ApprovalListOptions, Approvals, ApproveOptions } from './approvals.ts'
export type { PackOptions, Skipped } from './node/local-tree.ts'
export type { Unpacked } from './node/unpack-tree.ts'
export type { Audit } from './audit.ts'
export type { Budgets } from './budgets.ts'
export { AirlockClient, type ListOptions, type SandboxPage, type Sandboxes } from './client.ts'
export { outputBytes, type CommandLine, type CommandOptions, type RunningCommand } from './command.ts'
export { Airlock, type AirlockOptions } from './node/airlock.ts'
export { stateDirectories } from './node/config.ts'
export { AirlockError, type ErrorCode } from './errors.ts'
export type { EventOptions, FollowOptions } from './events.ts'
export type { ExportWorktreeOptions, SandboxWorktree } from './worktree.ts'
export type { FileListing, SandboxFiles, TreeOptions, UploadedTree } from './files.ts'
export type { AddGrantOptions, Grants } from './grants.ts'
export type { ArtifactListOptions, Artifacts, CollectOptions, UploadArtifactOptions } from './artifacts.ts'
export type { Job, JobArtifactInput, JobFile, JobListOptions, JobOptions, Jobs, JobWork } from './jobs/job.ts'
export type { Catalog } from './runs/catalog.ts'
export { runError, type Run, type RunListOptions, type RunOptions, type Runs } from './runs/run.ts'
export type { CreateKeyOptions, KeyListOptions, Keys } from './keys.ts'
export type { Killswitch, KillTarget } from './killswitch.ts'
export type { Metrics, MetricsOptions } from './metrics.ts'
export type { Models } from './llm/models.ts'
export type { Asked, Guardian, Policies } from './policies.ts'
export { RichOutput, type Json, type MimeBundle } from './rich-output.ts'
export type { CreateOptions, Sandbox } from './sandbox.ts'
export type { Session, SessionListOptions, SessionOptions, Sessions } from './session.ts'
export type { SessionStep, StepCallbacks, StepOptions, StepResult } from './step.ts'
export type { ImageSource, LocalTemplates } from './node/templates.ts'
export type { ImageBytes, ImportOptions, Templates } from './templates.ts'
export type { Tenants } from './tenants.ts'
export type { Usage } from './usage.ts'
export type { Secrets } from './tools/secrets.ts'
export type { LocalSecrets } from './node/secrets.ts'
export type { Tools } from './tools/tools.ts'
export type { Webhooks } from './webhooks.ts'
export type { Bytes, TransportOptions } from './transport/transport.ts'
export type {
  Agent,
  AgentMetrics,
  AgentState,
  AgentSummary,
  Alert,
  AlertCounts,
  ApiKey,
  Approval,
  ApprovalDetail,
  ApprovalEvent,
  ApprovalScope,
  ApprovalState,
  ArchiveSummary,
  AuditEvent,
  AuditQuery,
  AuditRecord,
  AuditStats,
  Backtest,
  Budget,
  Command,
  CommandEvent,
  CommandResult,
  Conditions,
  Decision,
  Effect,
  EndCause,
  Evaluation,
  EventPage,
  ExportedWorktree,
  ExportWorktreeBody,
  FileEntry,
  Grant,
  GuardianStatus,
  Identity,
  Artifact,
  ArtifactLink,
  CollectedArtifacts,
  Graph,
  GraphInput,
  Run as RunData,
  RunEvent,
  RunLog,
  RunMessage,
  RunResult,
  RunSummary,
  RunUsage,
  Job as JobData,
  JobEvent,
  JobLanguage,
  JobLog,
  JobState,
  KilledSandbox,
  KillReport,
  KillScope,
  MatchedRule,
  MetricEvent,
  MetricPoint,
  MetricResolution,
  MetricSample,
  MetricTotal,
  LlmStatus,
  Model,
  ModelLimits,
  SomeModelLimits,
  Mount,
  NewApiKey,
  NewWebhook,
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
  Runtime,
  Sandbox as SandboxData,
  SandboxMetrics,
  SandboxNow,
  SandboxState,
  Session as SessionData,
  SessionState,
  SetBudgetBody,
  SignalName,
  QuarantinedHead,
  SignedHead,
  SomeLimits,
  Step,
  StepError,
  StepEvent,
  StepStatus,
  Template,
  TemplateEvent,
  TemplateSpec,
  Tenant,
  TenantMetrics,
  UsageGroup,
  UsageQuery,
  UsageReport,
  UsageRow,
  Secret,
  Tool,
  ToolInput,
  Webhook,
  WorktreeChange,
  WorktreeDiff,
  WebhookEvent,
} from './nouns.ts'
