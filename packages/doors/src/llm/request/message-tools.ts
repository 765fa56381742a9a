import { z } from 'zod'
import { flag, list, maybe, name, text } from './fields.ts'
import { cacheControl } from './message-blocks.ts'
import { jsonObject, jsonSchema } from './open-json.ts'

const shared = {
  // Others are programs that run at the provider.
  allowed_callers: maybe(list(z.literal('direct'))),
  cache_control: cacheControl,
  input_examples: maybe(list(jsonObject)),
  strict: maybe(flag),
}

const own = z.strictObject({
  type: z
    .literal('custom')
    .nullish()
    .transform((type) => type ?? undefined),
  name,
  description: maybe(text),
  input_schema: jsonSchema,
  eager_input_streaming: maybe(flag),
  ...shared,
})

/**
 * Tools that Anthropic defines and the client runs, in the sandbox. Tools that run at the provider are in no list here, and
 * neither are those that see a screen or a browser.
 */
const CLIENT_TOOLS = [
  'bash_20250124',
  'text_editor_20250124',
  'text_editor_20250429',
  'text_editor_20250728',
  'memory_20250818',
] as const

const defined = z.strictObject({
  type: z.enum(CLIENT_TOOLS),
  name,
  max_characters: maybe(z.int().min(1)),
  ...shared,
})

export const tool = z.discriminatedUnion('type', [own, defined])

const parallel = { disable_parallel_tool_use: maybe(flag) }
export const toolChoice = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('auto'), ...parallel }),
  z.strictObject({ type: z.literal('any'), ...parallel }),
  z.strictObject({ type: z.literal('tool'), name, ...parallel }),
  z.strictObject({ type: z.literal('none') }),
])
