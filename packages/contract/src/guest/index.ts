export { type AgentBoot, INSIDE, type GuestBoot, type GuestGroups, type GuestPrograms } from './boot.ts'
export { pathBytes, pathText } from './byte-path.ts'
export { encodeData, encodeMessage, type Frame, FrameDecoder, FrameError, STREAM } from './codec.ts'
export {
  CHUNK_BYTES,
  GUEST_ERROR_CODES,
  type GuestCommandEnd,
  type GuestCommandSpec,
  type GuestCommandState,
  type GuestError,
  type GuestErrorCode,
  type GuestFileEntry,
  type GuestMessage,
  type GuestRequest,
  type GuestProcessLimits,
  type GuestResults,
  type GuestRuntime,
  type GuestSession,
  type GuestSessionSpec,
  type GuestStepSpec,
  type HostMessage,
  MAX_FRAME_BYTES,
  type OutputStream,
  PROTOCOL_VERSION,
  RICH_BYTES,
  WINDOW_BYTES,
} from './messages.ts'
