import { z } from 'zod'

/** A field that may be absent or null. Both go upstream as absent. */
export function maybe<T>(schema: z.ZodType<T>): z.ZodType<T | undefined> {
  return schema.nullish().transform((value) => value ?? undefined)
}

/** A field that answers carry and clients send back, or that says who asks. It never goes upstream, whatever it holds. */
export const dropped = z
  .unknown()
  .optional()
  .transform(() => undefined)

/** A field that answers carry as null. Any other value is refused with this sentence, which follows the field's name. */
export function onlyNull(sentence: string): z.ZodType<undefined> {
  return z
    .unknown()
    .optional()
    .refine((value) => value === undefined || value === null, { error: sentence })
    .transform(() => undefined)
}

/** As long as the body may be: only names are bounded by themselves. */
export const text = z.string()
export const name = z.string().min(1).max(256)
/** Of a call of a tool. Some servers keep what a model thought in it. */
export const callId = z.string().min(1).max(65_536)
export const count = z.int().min(0)
export const tokens = z.int().min(1)
export const flag = z.boolean()

/** Bound on the items of one list: that of Anthropic for messages, which is the largest of all providers. */
const MAX_ITEMS = 100_000

/** An array that is refused at its first wrong item: zod collects the issues of all items, which takes far longer. */
export function list<T>(schema: z.ZodType<T>, { min = 0, max = MAX_ITEMS } = {}): z.ZodType<T[]> {
  const counted = z.array(z.unknown()).min(min).max(max)
  return counted.transform((items, context) => {
    const read: T[] = []
    for (const [at, item] of items.entries()) {
      const { success, data, error } = schema.safeParse(item)
      if (!success) {
        for (const issue of error.issues) {
          const raw: z.core.$ZodRawIssue = { code: 'custom', input: item, message: issue.message }
          context.issues.push(Object.assign(raw, issue, { path: [at, ...issue.path] }))
        }
        return read
      }
      read.push(data)
    }
    return read
  })
}

export function atLeastOne<T>(schema: z.ZodType<T>): z.ZodType<T[]> {
  return list(schema, { min: 1 })
}
