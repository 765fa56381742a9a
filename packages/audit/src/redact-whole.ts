import { isSecretKey, type Json, SECRET_FLAG } from './redact.ts'
import { scrub } from './redact-text.ts'

const REDACTED = '[redacted]'
const MAX_FLAG = 256

/**
 * The value without anything that looks like a secret, and nothing cut: for whoever must see all of what they decide about.
 * It is as large as what was given, which is for the caller to bound.
 */
export function redactWhole(value: unknown): Json {
  if (typeof value === 'string') return scrub(value)
  if (typeof value === 'number' || typeof value === 'boolean') return value
  if (Array.isArray(value)) return redactItems(value)
  if (typeof value !== 'object' || value === null) return null
  const fields: readonly (readonly [string, unknown])[] = Object.entries(value)
  const given = fields.filter(([, item]) => item !== undefined)
  return Object.fromEntries(
    given.map(([key, item]) => [scrub(key), isSecretKey(key) ? REDACTED : redactWhole(item)] as const),
  )
}

function redactItems(items: readonly unknown[]): Json[] {
  return items.map((item, index) => {
    const before = index === 0 ? undefined : items[index - 1]
    const isSecret = typeof before === 'string' && before.length <= MAX_FLAG && SECRET_FLAG.test(before)
    return isSecret ? REDACTED : redactWhole(item)
  })
}
