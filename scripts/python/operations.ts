import { docstring, literal, PythonTypes, type Schema, snake, WIDTH, wrap } from './types.ts'

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly 'x-airlock-repeats': string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Content; readonly required?: boolean }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly schema: Schema
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

export interface PlacedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** The table of routes, and a class with a method for each. */
export function pythonOperations(operations: readonly PlacedOperation[]): string {
  return `${operationTable(operations)}\n\n\n${operationClass(operations)}`
}

/** The table of methods, paths and what may be sent twice. */
function operationTable(operations: readonly PlacedOperation[]): string {
  const rows = operations.map(
    ({ method, path, operation }) =>
      `    ${literal(operation.operationId)}: Route(${[method, path, operation['x-airlock-repeats'] === 'safe'].map(literal).join(', ')}),`,
  )
  return `class Route(NamedTuple):
    """How an operation is called. \`repeats\`: sending it twice has the effect of sending it once."""

    method: str
    path: str
    repeats: bool


ROUTES: Dict[str, Route] = {\n${rows.join('\n')}\n}`
}

/** A class with a method for each operation that is answered with JSON or nothing, and takes JSON or nothing. */
function operationClass(operations: readonly PlacedOperation[]): string {
  const types = new PythonTypes('types.')
  const methods = operations.filter(isPlain).map((one) => method(one, types))
  return `class Caller(Protocol):
    """The transport that operations are called over."""

    def json(
        self,
        name: str,
        *,
        params: Optional[Mapping[str, str]] = None,
        query: Optional[Mapping[str, QueryValue]] = None,
        body: Optional[object] = None,
    ) -> Any: ...


class Operations:
    """Every operation of the API that sends and answers JSON, by its name in the OpenAPI document."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

${methods.join('\n\n')}`
}

function isPlain({ operation }: PlacedOperation): boolean {
  const sent = Object.keys(operation.requestBody?.content ?? {})
  const answered = Object.keys(answer(operation))
  return (
    sent.every((type) => type === 'application/json') &&
    (answered.length === 0 || 'application/json' in answer(operation))
  )
}

function answer({ responses }: Operation): Content {
  return responses['200']?.content ?? {}
}

function method({ operation }: PlacedOperation, types: PythonTypes): string {
  const { operationId, parameters, requestBody, summary } = operation
  const of = (place: string): readonly Parameter[] => parameters.filter((one) => one.in === place)
  const body = requestBody?.content['application/json']?.schema
  const answered = answer(operation)['application/json']?.schema
  const result = answered ? types.type(answered, `${operationId}Answer`) : 'None'
  const head = [
    'self',
    ...of('path').map(({ name }) => `${snake(name)}: str`),
    ...(body ? [bodyArgument(types.type(body, `${operationId}Body`), requestBody?.required !== false)] : []),
    ...queryArguments(of('query'), types),
  ]
  const call = [
    literal(operationId),
    ...pairs('params', of('path')),
    ...pairs('query', of('query')),
    ...(body ? [requestBody?.required === false ? 'body=body or {}' : 'body=body'] : []),
  ]
  const asked = `self._caller.json(${call.join(', ')})`
  const ask =
    asked.length > WIDTH - 20
      ? `self._caller.json(\n${call.map((one) => `            ${one},`).join('\n')}\n        )`
      : asked
  const last =
    result === 'None' ? [`        ${ask}`] : [`        answer = ${ask}`, `        return cast(${result}, answer)`]
  return [signature(snake(operationId), head, result), `        ${docstring(summary)}`, ...last].join('\n')
}

function signature(name: string, head: readonly string[], result: string): string {
  const line = `    def ${name}(${head.join(', ')}) -> ${result}:`
  if (line.length <= WIDTH) return line
  const lines = head.map((one) => {
    const [, before = '', type = '', after = ''] = /^(\w+: )(.*?)( = None)?$/s.exec(one) ?? []
    return before === '' ? `        ${one},` : `        ${before}${wrap(type, `        ${before}`)}${after},`
  })
  return `    def ${name}(\n${lines.join('\n')}\n    ) -> ${result}:`
}

function bodyArgument(type: string, isRequired: boolean): string {
  return isRequired ? `body: ${type}` : `body: Optional[${type}] = None`
}

function queryArguments(parameters: readonly Parameter[], types: PythonTypes): readonly string[] {
  if (parameters.length === 0) return []
  const args = parameters.map(({ name, required, schema }) => {
    const type = queryType(schema, types)
    return required ? `${snake(name)}: ${type}` : `${snake(name)}: Optional[${type}] = None`
  })
  return ['*', ...args.toSorted((a, b) => Number(a.includes('=')) - Number(b.includes('=')))]
}

/** Numbers and flags are numbers and booleans for a caller, and text in an address. */
function queryType(schema: Schema, types: PythonTypes): string {
  if (schema.enum?.length === 2 && schema.enum.includes('true')) return 'bool'
  const type = types.type(schema, 'Query')
  return type === 'Any' ? 'Union[str, int]' : type
}

function pairs(name: string, parameters: readonly Parameter[]): readonly string[] {
  if (parameters.length === 0) return []
  const entries = parameters.map((one) => `${literal(one.name)}: ${snake(one.name)}`)
  const line = `${name}={${entries.join(', ')}}`
  if (line.length < WIDTH - 20) return [line]
  return [`${name}={\n${entries.map((one) => `                ${one},`).join('\n')}\n            }`]
}
