export { canonical, canonicalFields, joinFields } from './canonical.ts'
export { type ChainPosition, GENESIS, hashRecord, hashText, macOf } from './chain.ts'
export { isSignedBy, parsePublicKey, signBroken, signDropped, signHead, signQuarantined } from './head.ts'
export {
  type Followed,
  type RecorderReply,
  recorderRequest,
  type RecorderRequest,
  type RecordPage,
  type Settled,
} from './protocol.ts'
export { OpenDeeds } from './open-deeds.ts'
export type { RecordFilter } from './record-filter.ts'
export { RecorderClient, type RecorderClientOptions } from './recorder-client.ts'
export { redact, redactRecord, type Json, type Payload } from './redact.ts'
export { redactText } from './redact-text.ts'
export { redactWhole } from './redact-whole.ts'
export type {
  AuditSink,
  EventReader,
  EvidenceKeeper,
  EvidenceReader,
  NoteOptions,
  StagedSink,
  Written,
} from './sink.ts'
export { type Broken, ChainVerifier, type Verified, verifyExport } from './verify.ts'
