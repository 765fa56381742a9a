export {
  command,
  commandEvent,
  commandResult,
  commandState,
  runCommandBody,
  signalCommandBody,
  signalName,
  type Command,
  type CommandEvent,
  type CommandResult,
  type CommandState,
  type RunCommandBody,
  type SignalName,
} from './command.ts'
export { describeIssues, parseConfig, SECRET_VARIABLES, SETTINGS, type Config, type SettingName } from './config.ts'
export {
  dataPlaneHealth,
  fileOperation,
  nodeCommand,
  nodeCommandSpec,
  nodeSandbox,
  resourceUsage,
  signalRequest,
  startedSandbox,
  startSandboxRequest,
  stoppedSandbox,
  type DataPlaneHealth,
  type FileOperation,
  type NodeCommand,
  type NodeCommandSpec,
  type NodeSandbox,
  type ResourceUsage,
  type StartedSandbox,
  type StoppedSandbox,
} from './data-plane-api.ts'
export { BOUNDS, DEFAULTS } from './defaults.ts'
export {
  AirlockError,
  ERROR_CODES,
  ERRORS,
  isAirlockError,
  isErrorCode,
  toAirlockError,
  type ErrorCode,
} from './errors.ts'
export {
  armFailpoint,
  FAILPOINTS,
  PROCESSES,
  traceSteps,
  type Failpoint,
  type FailpointName,
  type ProcessName,
} from './failpoints.ts'
export { fileEntry, type FileEntry } from './file.ts'
export { guestMessage, guestResults } from './guest-schemas.ts'
export { permit, signPermit, verifyPermit, type Permit } from './permit.ts'
export { point, POINTS, recordStatus, type Point, type RecordStatus } from './points.ts'
export { role, ROLES, type Principal, type Role } from './principal.ts'
export {
  auditChain,
  auditQuery,
  auditRecord,
  newRecord,
  signedHead,
  type AuditChain,
  type AuditQuery,
  type AuditRecord,
  type NewRecord,
  type SignedHead,
} from './record.ts'
export { COMMON_ERRORS, ROUTES, type Route, type RouteInput, type RouteName, type RouteOutput } from './routes.ts'
export {
  createSandboxBody,
  effectiveIsolation,
  END_REASONS,
  endReason,
  extendSandboxBody,
  limits,
  sandbox,
  SANDBOX_STATES,
  sandboxState,
  terminateSandboxBody,
  type CreateSandboxBody,
  type EffectiveIsolation,
  type EndReason,
  type Limits,
  type Sandbox,
  type SandboxState,
} from './sandbox.ts'
export { agentId, commandId, envVars, id, labels, name, sandboxId, sandboxPath, within } from './scalars.ts'
