import { AirlockError, isAirlockError } from '@airlock/contract'
import {
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { Progress, type SendProgress } from './progress.ts'
import type { Routes } from './routes.ts'
import { TOOLS } from './table.ts'
import { text, type Tool } from './tool.ts'

const BY_NAME: ReadonlyMap<string, Tool> = new Map(TOOLS.map((tool) => [tool.name, tool]))
const LISTING = TOOLS.map((tool) => tool.listing)
/** Tools change with the version of the server only. */
const LIST_TTL_MS = 300_000

const INSTRUCTIONS =
  'Airlock runs code that nobody trusts in sandboxes without a network. For one piece of code use run_code. For several that ' +
  'build on each other use create_session and run_step, which remember variables and imports. Files are in /workspace. ' +
  'End what you created with terminate.'

/** Where an error of ours is in the result of a tool, for programs. */
export const ERROR_KEY = 'airlock/error'

export interface McpOptions {
  readonly routes: Routes
  readonly version: string
  /** Aborts every call, as when the server stops. */
  readonly signal?: AbortSignal
  /** Told of faults that are ours; the caller hears only that there was one. */
  readonly onFault: (error: unknown) => void
  /** Told of each call as it begins. */
  readonly onCall?: (call: RunningCall) => void
}

export interface RunningCall {
  /** As the client named it. */
  readonly id: string | number
  /** Also of one that was cancelled: then what it started has been stopped. */
  readonly ended: Promise<unknown>
  readonly cancel: () => void
}

/** A server of the protocol for one connection or one request. Keeps nothing between calls. */
export function createServer(options: McpOptions): McpServer {
  const mcp = new McpServer(
    { name: 'airlock', title: 'Airlock', version: options.version },
    {
      capabilities: { tools: { listChanged: false } },
      instructions: INSTRUCTIONS,
      cacheHints: { 'tools/list': { ttlMs: LIST_TTL_MS, cacheScope: 'private' } },
    },
  )
  mcp.server.setRequestHandler('tools/list', () => ({ tools: [...LISTING] }))
  mcp.server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = BY_NAME.get(params.name)
    if (!tool)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name.slice(0, 100)}.`)
    const cancelled = new AbortController()
    const signals = [context.mcpReq.signal, cancelled.signal, ...(options.signal ? [options.signal] : [])]
    const ended = callTool(tool, params.arguments ?? {}, { options, context, signal: AbortSignal.any(signals) })
    options.onCall?.({ id: context.mcpReq.id, ended, cancel: () => cancelled.abort() })
    return ended
  })
  return mcp
}

async function callTool(
  tool: Tool,
  input: unknown,
  { options, context, signal }: { readonly options: McpOptions; readonly context: ServerContext; signal: AbortSignal },
): Promise<CallToolResult> {
  using progress = new Progress(progressOf(context))
  try {
    return await tool.call(input, { routes: options.routes, progress, signal })
  } catch (error) {
    if (signal.aborted) return errorResult(new AirlockError('timeout', 'The call was cancelled.'))
    if (!isAirlockError(error)) options.onFault(error)
    return errorResult(isAirlockError(error) ? error : new AirlockError('internal'))
  }
}

function progressOf(context: ServerContext): SendProgress | undefined {
  const progressToken = context.mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  return async (progress) =>
    context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
}

function errorResult({ code, message, hint, retryable, approval }: AirlockError): CallToolResult {
  const error = { code, message, hint, retryable, ...(approval === undefined ? {} : { approval }) }
  return { isError: true, content: [text(`${message} (${code})\n${hint}`)], _meta: { [ERROR_KEY]: error } }
}
