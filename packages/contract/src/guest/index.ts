export { INSIDE, type GuestBoot, type GuestGroups } from './boot.ts'
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
  type GuestResults,
  type HostMessage,
  MAX_FRAME_BYTES,
  type OutputStream,
  PROTOCOL_VERSION,
  WINDOW_BYTES,
} from './messages.ts'
