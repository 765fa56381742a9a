import { z } from 'zod'
import { AirlockError } from '../errors.ts'
import { isShallow } from './is-shallow.ts'
import { toolName, toolParameters } from '../nouns/tools/tool.ts'
import { sandboxId } from '../nouns/scalars.ts'

const requestId = z.string().regex(/^req_[0-9a-z]+$/)
const callId = z.string().max(64)
const from = { sandbox: sandboxId, token: z.string().max(8192).nullable() }

/** What the doors ask for a program that looks at its tools. */
export const listToolsCall = z.strictObject(from)
export type ListToolsCall = z.infer<typeof listToolsCall>

/** A tool, as the programs that may call it see it. */
export const toolInside = z.strictObject({ name: toolName, description: z.string(), parameters: toolParameters })
export type ToolInside = z.infer<typeof toolInside>
export const toolsInside = z.strictObject({ tools: z.array(toolInside) })

/** More levels than any parameter has. */
const PARAM_LEVELS = 8

/** What a program inside asks for. */
export const toolCallBody = z.strictObject({
  /** Any text: a program may name a tool that no tenant could have. */
  tool: z.string().max(256),
  params: z
    .unknown()
    .refine((params) => isShallow(params, PARAM_LEVELS), {
      error: `must have at most ${PARAM_LEVELS} levels`,
      abort: true,
    })
    .pipe(z.record(z.string(), z.json()))
    .default({}),
})

/** What the doors ask before a service hears of a call. */
export const openToolCall = z.strictObject({ ...from, requestId, ...toolCallBody.shape })
export type OpenToolCall = z.infer<typeof openToolCall>

/** It may be sent once, as it is. */
export const openedToolCall = z.strictObject({
  call: callId,
  /** Signed, for `keys`. */
  order: z.string(),
  /** JSON; null without one. */
  body: z.string().nullable(),
  timeoutMs: z.int().min(1),
})
export type OpenedToolCall = z.infer<typeof openedToolCall>

/** How a call ended. */
export const closeToolCall = z.strictObject({
  sandbox: sandboxId,
  call: callId,
  /** Status of the service; null when it has not answered. */
  status: z.int().nullable(),
  /** Body of the answer. */
  received: z.int().min(0),
  /** Registry code of what went wrong; null when the service answered. */
  error: z.string().max(64).nullable(),
  message: z.string().max(512).nullable(),
})
export type CloseToolCall = z.infer<typeof closeToolCall>

/** One text for every denial, whichever process found it: the evidence says why. */
export function toolDenied(): AirlockError {
  return new AirlockError('policy_denied', 'This call is not allowed.', {
    hint: 'Ask an administrator which tools this sandbox has. The evidence says why.',
  })
}
