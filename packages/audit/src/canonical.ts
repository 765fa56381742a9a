import { AirlockError } from '@airlock/contract'

const MAX_DEPTH = 64

/**
 * The one text of a JSON value: keys sorted by UTF-16 code units, no white space, numbers and strings as
 * JSON.stringify writes them, undefined fields left out. What has no JSON text, or is nested too deep, is an error.
 */
export function canonical(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new AirlockError('invalid_request', `A value is nested deeper than ${MAX_DEPTH}.`)
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new AirlockError('invalid_request', 'A number is not finite.')
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(',')}]`
  if (typeof value === 'object' && value !== null) return joinFields(canonicalFields(value, depth))
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) throw new AirlockError('invalid_request', `A ${typeof value} is not JSON.`)
  return text
}

/** A key of an object and the canonical text of its value. */
export type CanonicalField = readonly [key: string, text: string]

/** The fields of an object, for who needs the text of it and of some more. */
export function canonicalFields(value: object, depth = 0): CanonicalField[] {
  const fields: CanonicalField[] = []
  for (const [key, item] of Object.entries(value))
    if (item !== undefined) fields.push([key, canonical(item, depth + 1)])
  return fields
}

/** The text of the object that has exactly these fields. */
export function joinFields(fields: readonly CanonicalField[]): string {
  const texts = fields.toSorted(byKey).map(([key, text]) => `${JSON.stringify(key)}:${text}`)
  return `{${texts.join(',')}}`
}

function byKey([a]: CanonicalField, [b]: CanonicalField): number {
  return a < b ? -1 : 1
}
