import { z } from 'zod'

/** A column that holds JSON as text: parsed by its schema, never cast. */
export function jsonColumn<T extends z.ZodType>(schema: T) {
  return z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text)
      } catch {
        context.issues.push({ code: 'custom', message: 'is not JSON', input: text })
        return z.NEVER
      }
    })
    .pipe(schema)
}

/** A column that is 0 or 1. */
export const flagColumn = z.union([z.literal(0), z.literal(1)]).transform((flag) => flag === 1)
