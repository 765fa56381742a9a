export type { Audit } from './audit.ts'
export { Airlock, type ListOptions, type SandboxPage, type Sandboxes } from './client.ts'
export { outputBytes, type CommandLine, type CommandOptions, type RunningCommand } from './command.ts'
export { stateDirectories } from './config.ts'
export { AirlockError, type ErrorCode } from './errors.ts'
export type { FileListing, SandboxFiles } from './files.ts'
export type { CreateOptions, Sandbox } from './sandbox.ts'
export type { Bytes, TransportOptions } from './transport.ts'
export type {
  AuditQuery,
  AuditRecord,
  Command,
  CommandEvent,
  CommandResult,
  FileEntry,
  Identity,
  Sandbox as SandboxData,
  SandboxState,
  SignalName,
  SignedHead,
} from './nouns.ts'
