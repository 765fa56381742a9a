import { AirlockError, describeIssues, type RouteName } from '@airlock/contract'
import type { CallToolResult, ContentBlock, Tool as ToolListing } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Progress } from './progress.ts'
import type { Routes } from './routes.ts'

/** What a tool has while it works for one caller. */
export interface ToolCall {
  readonly routes: Routes
  readonly progress: Progress
  /** Aborts when the caller calls it off or is gone. */
  readonly signal: AbortSignal
}

/** `structured` is the answer for programs; `content` for models, the same as JSON when absent. */
export interface ToolAnswer<T> {
  readonly structured: T
  readonly content?: readonly ContentBlock[]
  /** What was asked for was done and failed, as code that throws does. */
  readonly failed?: boolean
}

interface ToolDefinition<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** What it does, it does through these. */
  readonly routes: readonly RouteName[]
  /** Made of the schemas of its routes. */
  readonly input: I
  /** What does not belong to it is left out of the answer. */
  readonly output: O
  readonly hints: Hints
  readonly run: (input: z.output<I>, call: ToolCall) => Promise<ToolAnswer<z.input<O>>>
}

interface Hints {
  readonly readOnly?: boolean
  readonly destructive?: boolean
  readonly idempotent?: boolean
}

export interface Tool {
  readonly name: string
  readonly routes: readonly RouteName[]
  /** As `tools/list` shows it. */
  readonly listing: ToolListing
  /** Throws `AirlockError`, or the reason of the signal. */
  call(input: unknown, call: ToolCall): Promise<CallToolResult>
}

export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(definition: ToolDefinition<I, O>): Tool {
  const { name, routes, input, output, run } = definition
  return {
    name,
    routes,
    listing: listingOf(definition),
    call: async (given, call) => {
      const parsed = input.safeParse(given)
      if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
      const { structured, content, failed = false } = await run(parsed.data, call)
      const structuredContent = output.parse(structured)
      return {
        content: content ? [...content] : [text(JSON.stringify(structuredContent, null, 1))],
        structuredContent,
        ...(failed ? { isError: true } : {}),
      }
    },
  }
}

export function text(words: string): ContentBlock {
  return { type: 'text', text: words }
}

function listingOf<I extends z.ZodObject, O extends z.ZodObject>(definition: ToolDefinition<I, O>): ToolListing {
  const { name, title, description, hints } = definition
  const { readOnly = false, destructive = false, idempotent = false } = hints
  return {
    name,
    title,
    description,
    inputSchema: objectSchema(definition.input, 'input'),
    outputSchema: objectSchema(definition.output, 'output'),
    annotations: {
      title,
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: idempotent,
      // A sandbox has no network device.
      openWorldHint: false,
    },
  }
}

function objectSchema(schema: z.ZodObject, io: 'input' | 'output'): ToolListing['inputSchema'] {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return parseObjectSchema(rest)
}

/** The schema of an object is one of type "object", which its type does not say. */
function parseObjectSchema(schema: object): ToolListing['inputSchema'] {
  return schema as ToolListing['inputSchema']
}
