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
  if (typeof value === 'object' && value !== null) return canonicalObject(value, depth)
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) throw new AirlockError('invalid_request', `A ${typeof value} is not JSON.`)
  return text
}

function canonicalObject(value: object, depth: number): string {
  const fields: string[] = []
  for (const [key, item] of Object.entries(value).sort(byKey))
    if (item !== undefined) fields.push(`${JSON.stringify(key)}:${canonical(item, depth + 1)}`)
  return `{${fields.join(',')}}`
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}
