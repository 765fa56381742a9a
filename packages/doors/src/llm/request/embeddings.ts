import { z } from 'zod'
import { atLeastOne, count, dropped, maybe, name, text, tokens } from './fields.ts'

/** `POST /v1/embeddings`. Input is text, or tokens by number. */
export const embeddingsBody = z.strictObject({
  model: name,
  input: z.union([text, atLeastOne(text), atLeastOne(count), atLeastOne(atLeastOne(count))]),
  dimensions: maybe(tokens),
  encoding_format: maybe(z.enum(['float', 'base64'])),
  user: dropped,
})
export type EmbeddingsBody = z.output<typeof embeddingsBody>
