import { z } from 'zod'
import { maybe, name, text } from './fields.ts'
import { jsonSchema } from './open-json.ts'

/** A function as OpenAI's protocols define it. The client runs it. */
export const functionShape = {
  name,
  description: maybe(text),
  parameters: maybe(jsonSchema),
  strict: maybe(z.boolean()),
}

export const serviceTier = maybe(
  z.enum(['auto', 'default'], { error: 'only "auto" and "default" have a price in the table of the server' }),
)

export const effort = maybe(z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']))
export const verbosity = maybe(z.enum(['low', 'medium', 'high']))

/** Whatever a client says of storing, nothing is stored: `keys` says so upstream. */
export const neverStored = z
  .boolean()
  .nullish()
  .transform(() => undefined)
