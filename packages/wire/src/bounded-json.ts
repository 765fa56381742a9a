import type { IncomingMessage } from 'node:http'
import { AirlockError, describeIssues, toAirlockError } from '@airlock/contract'
import type { z } from 'zod'

/** A body must be here after this time; a sender that drips bytes is cut off. */
const BODY_MS = 30_000
const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** The JSON of a request; nothing says as much as `{}`. What does not fit is the sender's fault and says how. */
export async function readJson<T>(request: IncomingMessage, schema: z.ZodType<T>, maxBytes: number): Promise<T> {
  const bytes = await readBounded(request, { maxBytes })
  const parsed = schema.safeParse(bytes.length === 0 ? {} : parseJson(decodeText(bytes)))
  if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
  return parsed.data
}

interface Bounds {
  readonly maxBytes: number
  readonly ms?: number
  /** Told of bytes that arrived. An error that it throws refuses the body. */
  readonly onBytes?: (bytes: number) => void
}

/** A body whole. One above the bound is left where it is, and its connection with it, for the error to be answered. */
export async function readBounded(
  message: IncomingMessage,
  { maxBytes, ms = BODY_MS, onBytes }: Bounds,
): Promise<Buffer> {
  const timer = setTimeout(() => message.destroy(notArrived()), ms)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let size = 0
  const take = (chunk: Buffer): void => {
    chunks.push(chunk)
    size += chunk.length
    if (size > maxBytes) reject(tooLarge(maxBytes))
    try {
      onBytes?.(chunk.length)
    } catch (error) {
      message.off('data', take)
      chunks.length = 0
      reject(toAirlockError(error))
    }
  }
  const end = (): void => {
    // `close` follows in the same tick; to make an error that nobody sees costs more than reading the body did.
    message.off('close', close)
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))
  }
  const close = (): void => reject(message.errored ?? notArrived())
  message.on('data', take).once('end', end).once('error', reject).once('close', close)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    // Whoever refuses the rest answers first, so the connection stays whole.
    message.off('data', take).off('end', end).off('close', close).off('error', reject).pause()
  }
}

export function decodeText(bytes: Buffer): string {
  try {
    return UTF8.decode(bytes)
  } catch (cause) {
    throw notJson(cause)
  }
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw notJson(cause)
  }
}

export function tooLarge(maxBytes: number): AirlockError {
  return new AirlockError('body_too_large', `The body is larger than ${maxBytes} bytes.`)
}

function notArrived(): AirlockError {
  return new AirlockError('timeout', 'The body did not arrive.')
}

function notJson(cause: unknown): AirlockError {
  return new AirlockError('invalid_request', 'The body is not valid JSON.', { cause })
}
