import type { RouteOutput } from '@airlock/contract'

/**
 * The types of the contract that callers see. They are inferred from schemas; `npm run build:packages` writes each of
 * them out in full, so that whoever installs the SDK needs neither the contract nor its schema library.
 */
export type {
  AuditChain,
  AuditQuery,
  AuditRecord,
  Command,
  CommandEvent,
  CommandResult,
  CreateSandboxBody,
  FileEntry,
  Sandbox,
  SandboxState,
  SignalName,
  SignedHead,
} from '@airlock/contract'

/** Who the server takes a caller for. */
export type Identity = RouteOutput<'whoami'>
