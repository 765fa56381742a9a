import { AirlockError, TOOL_BOUNDS, type ToolParameter, type ToolParameters } from '@airlock/contract'

type Params = Readonly<Record<string, unknown>>
type Scalar = Exclude<ToolParameter, { type: 'array' }>

/** Throws `invalid_request` unless these are the parameters that the tool describes, and no other. */
export function checkParams({ properties, required }: ToolParameters, params: Params): void {
  for (const name of required) if (!Object.hasOwn(params, name)) throw wrong(name, 'is missing')
  for (const [name, value] of Object.entries(params)) {
    const described = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (described === undefined) throw wrong(name, 'is not a parameter of this tool')
    const fault = faultOf(described, value)
    if (fault !== undefined) throw wrong(name, fault)
  }
}

function faultOf(described: ToolParameter, value: unknown): string | undefined {
  if (described.type !== 'array') return faultOfScalar(described, value)
  if (!Array.isArray(value)) return 'must be an array'
  if (value.length > (described.maxItems ?? Infinity)) return `must have at most ${described.maxItems} items`
  return value.map((item) => faultOfScalar(described.items, item)).find((fault) => fault !== undefined)
}

function faultOfScalar(described: Scalar, value: unknown): string | undefined {
  switch (described.type) {
    case 'string':
      return typeof value === 'string' ? faultOfText(described, value) : 'must be a string'
    case 'integer':
      return Number.isSafeInteger(value) ? faultOfNumber(described, Number(value)) : 'must be an integer'
    case 'number':
      return typeof value === 'number' ? faultOfNumber(described, value) : 'must be a number'
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false'
  }
}

function faultOfText(
  { enum: values, minLength = 0, maxLength = TOOL_BOUNDS.textLength }: Extract<Scalar, { type: 'string' }>,
  value: string,
): string | undefined {
  if (!value.isWellFormed()) return 'must be well-formed text'
  if (values !== undefined && !values.includes(value)) return `must be one of ${values.join(', ')}`
  if (value.length < minLength) return `must have at least ${minLength} characters`
  return value.length > maxLength ? `must have at most ${maxLength} characters` : undefined
}

function faultOfNumber(
  {
    minimum = -Infinity,
    maximum = Infinity,
  }: { readonly minimum?: number | undefined; readonly maximum?: number | undefined },
  value: number,
): string | undefined {
  if (value < minimum) return `must be at least ${minimum}`
  return value > maximum ? `must be at most ${maximum}` : undefined
}

/** Names are a program's own text: a long one is cut. */
function wrong(name: string, fault: string): AirlockError {
  return new AirlockError('invalid_request', `params.${name.slice(0, 64)} ${fault}.`)
}
