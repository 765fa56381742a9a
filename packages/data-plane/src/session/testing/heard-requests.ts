import type { Socket } from 'node:net'
import { encodeMessage, FrameDecoder, type GuestRequest } from '@airlock/contract/guest'

/** What a link asks its guest. */
export interface HeardRequest {
  readonly id: number
  readonly request: GuestRequest
}

/** Answers the next request of that kind with `result`. */
export function answerNext(socket: Socket, result: unknown, op?: GuestRequest['op']): void {
  void nextRequest(socket, op).then(({ id }) => socket.write(encodeMessage({ type: 'result', id, result })))
}

/** Resolves with the next request of that kind, or of any. */
export async function nextRequest(socket: Socket, op?: GuestRequest['op']): Promise<HeardRequest> {
  const decoder = new FrameDecoder()
  return await new Promise((resolve) => {
    const onData = (chunk: Buffer) => {
      const heard = decoder.push(chunk).flatMap((frame) => (frame.kind === 'message' ? [frame.json] : []))
      const found = heard.filter(isRequest).find(({ request }) => op === undefined || request.op === op)
      if (!found) return
      socket.off('data', onData)
      resolve(found)
    }
    socket.on('data', onData)
  })
}

function isRequest(json: unknown): json is HeardRequest {
  return typeof json === 'object' && json !== null && 'type' in json && json.type === 'request' && 'id' in json
}
