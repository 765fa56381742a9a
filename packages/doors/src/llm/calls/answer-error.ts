import type { AirlockError } from '@airlock/contract'
import type { DoorResponse } from '../../listener/http-door.ts'
import { errorAnswer } from '../answer/error-body.ts'
import type { Protocol } from '../routes/find-route.ts'

interface Answered {
  readonly protocol: Protocol
  readonly callId: string
  readonly status?: number
  readonly charged?: number | null | undefined
}

/** Answers an error in the shape of the client's protocol. After the first byte of another answer the connection is cut. */
export function answerError(response: DoorResponse, error: AirlockError, { status, ...call }: Answered): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) return void response.destroy()
  const answer = errorAnswer(error, call, status)
  response.writeHead(answer.status, { ...answer.headers, 'content-length': Buffer.byteLength(answer.body) })
  response.end(answer.body)
}
