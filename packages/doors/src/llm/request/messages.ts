import { z } from 'zod'
import { atLeastOne, dropped, flag, list, maybe, name, text, tokens } from './fields.ts'
import { cacheControl, message, systemText } from './message-blocks.ts'
import { tool, toolChoice } from './message-tools.ts'
import { jsonSchema } from './open-json.ts'

const MAX_STOPS = 64

const display = maybe(z.enum(['summarized', 'omitted']))
const thinking = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('enabled'), budget_tokens: tokens, display }),
  z.strictObject({ type: z.literal('adaptive'), display }),
  z.strictObject({ type: z.literal('between_tools') }),
  z.strictObject({ type: z.literal('disabled') }),
])

const outputConfig = z.strictObject({
  effort: maybe(z.enum(['low', 'medium', 'high', 'xhigh', 'max'])),
  format: maybe(z.strictObject({ type: z.literal('json_schema'), schema: jsonSchema })),
})

const counted = {
  model: name,
  messages: atLeastOne(message),
  system: maybe(systemText),
  tools: maybe(list(tool)),
  tool_choice: maybe(toolChoice),
  thinking: maybe(thinking),
  output_config: maybe(outputConfig),
  cache_control: cacheControl,
  speed: maybe(z.literal('standard', { error: 'only "standard" has a price in the table of the server' })),
}

/** `POST /v1/messages/count_tokens`. */
export const countTokensBody = z.strictObject(counted)
export type CountTokensBody = z.output<typeof countTokensBody>

/** `POST /v1/messages`. */
export const messagesBody = z.strictObject({
  ...counted,
  max_tokens: maybe(tokens),
  stream: maybe(flag),
  temperature: maybe(z.number().min(0).max(1)),
  top_p: maybe(z.number().min(0).max(1)),
  top_k: maybe(z.int().min(0)),
  stop_sequences: maybe(list(text, { max: MAX_STOPS })),
  service_tier: maybe(
    z.enum(['auto', 'standard_only'], {
      error: 'only "auto" and "standard_only" have a price in the table of the server',
    }),
  ),
  metadata: dropped,
})
export type MessagesBody = z.output<typeof messagesBody>
