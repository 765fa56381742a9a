/** The part of JSON Schema that the OpenAPI document uses. */
export interface Schema {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly items?: Schema | false
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
}

export const WIDTH = 120
/** Words that cannot be names in Python. */
const RESERVED = new Set(['from', 'import', 'global', 'class', 'in', 'is', 'not', 'and', 'or', 'if', 'else', 'with'])

/** Collects the declarations of named types, in an order in which each name is used after or inside quotes. */
export class PythonTypes {
  readonly #module: string
  readonly #declarations: string[] = []
  readonly #names = new Set<string>()
  readonly #aliases: string[] = []

  /** `module` is put before the names of components, for types that are written in another module. */
  constructor(module = '') {
    this.#module = module
  }

  /** A component of the document: a TypedDict, or an alias of another type. */
  declare(name: string, schema: Schema): void {
    this.#claim(name)
    if (schema.properties) this.#dictionary(name, schema)
    else {
      const text = `${name} = ${wrap(this.type(schema, name), `${name} = `)}`
      this.#aliases.push([...comment(schema.description, ''), text].join('\n'))
    }
  }

  /** The type of a value, as an expression. Objects inside get a name made of the names around them. */
  type(schema: Schema, name: string): string {
    if (schema.$ref !== undefined) return `"${this.#module}${schema.$ref.split('/').at(-1) ?? ''}"`
    if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`
    if (schema.enum) return `Literal[${schema.enum.map(literal).join(', ')}]`
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return union(choices.map((one) => this.type(one, choiceName(name, one, choices))))
    if (schema.allOf?.length === 1 && schema.allOf[0]) return this.type(schema.allOf[0], name)
    if (Array.isArray(schema.type))
      return union(schema.type.map((type: string) => this.type({ ...schema, type }, name)))
    return this.#simple(schema, name)
  }

  text(): string {
    return [...this.#declarations, ...this.#aliases].join('\n\n\n')
  }

  #simple(schema: Schema, name: string): string {
    switch (schema.type) {
      case 'string':
        return 'str'
      case 'integer':
        return 'int'
      case 'number':
        return 'float'
      case 'boolean':
        return 'bool'
      case 'null':
        return 'None'
      case 'array':
        return `List[${schema.items ? this.type(schema.items, `${name}Item`) : 'Any'}]`
      case 'object':
        return this.#object(schema, name)
      case undefined:
      default:
        return 'Any'
    }
  }

  #object(schema: Schema, name: string): string {
    if (schema.properties) {
      this.#claim(name)
      this.#dictionary(name, schema)
      return `"${name}"`
    }
    const { additionalProperties: values } = schema
    return `Dict[str, ${typeof values === 'object' ? this.type(values, `${name}Value`) : 'Any'}]`
  }

  /** Python 3.9 has no `NotRequired`: what must be there is in a class of its own, which the other one extends. */
  #dictionary(name: string, { properties = {}, required = [], description }: Schema): void {
    const fields = Object.entries(properties).map(([key, field]) => ({
      key,
      type: this.type(field, `${name}${pascal(key)}`),
      about: field.description,
    }))
    const needed = fields.filter(({ key }) => required.includes(key))
    const optional = fields.filter(({ key }) => !required.includes(key))
    if (optional.length === 0) this.#class(name, 'TypedDict', { fields: needed, description })
    else if (needed.length === 0) this.#class(name, 'TypedDict, total=False', { fields: optional, description })
    else {
      this.#class(`_${name}Required`, 'TypedDict', { fields: needed, description: undefined })
      this.#class(name, `_${name}Required, total=False`, { fields: optional, description })
    }
  }

  #class(name: string, bases: string, { fields, description }: ClassBody): void {
    const isPlain = fields.every(({ key }) => /^[A-Za-z_]\w*$/.test(key) && !RESERVED.has(key))
    if (isPlain) {
      const lines = fields.flatMap(({ key, type, about }) => [
        ...comment(about, '    '),
        `    ${key}: ${wrap(type, `    ${key}: `)}`,
      ])
      const doc = description === undefined ? [] : [`    ${docstring(description)}`, '']
      this.#declarations.push(
        [`class ${name}(${bases}):`, ...doc, ...(lines.length > 0 ? lines : ['    pass'])].join('\n'),
      )
      return
    }
    // A key that is no name of Python has only this form.
    const [base = '', ...options] = bases.split(', ')
    if (base !== 'TypedDict') throw new TypeError(`${name} has optional keys and one that is no name of Python.`)
    const pairs = fields.flatMap(({ key, type, about }) => [
      ...comment(about, '    '),
      `        ${literal(key)}: ${type},`,
    ])
    const tail = options.length > 0 ? `    ${options.join(', ')},\n)` : ')'
    this.#aliases.push(`${name} = TypedDict(\n    "${name}",\n    {\n${pairs.join('\n')}\n    },\n${tail}`)
  }

  #claim(name: string): void {
    if (this.#names.has(name)) throw new TypeError(`Two types are called ${name}.`)
    this.#names.add(name)
  }
}

interface ClassBody {
  readonly fields: readonly { readonly key: string; readonly type: string; readonly about: string | undefined }[]
  readonly description: string | undefined
}

/** Choices that differ in the value of one field, as events do, are called after it; others are numbered. */
function choiceName(name: string, choice: Schema, choices: readonly Schema[]): string {
  const tags = ['event', 'kind', 'state'].map((key) => choice.properties?.[key]?.const)
  const tag = tags.find((value) => typeof value === 'string')
  if (typeof tag === 'string') return `${name}${pascal(tag)}`
  const objects = choices.filter((one) => one.properties)
  return objects.length > 1 ? `${name}${choices.indexOf(choice) + 1}` : name
}

function union(types: readonly string[]): string {
  const known = [...new Set(types)]
  const some = known.filter((type) => type !== 'None')
  const inner = some.length === 1 ? (some[0] ?? 'Any') : `Union[${some.join(', ')}]`
  return known.includes('None') ? `Optional[${inner}]` : inner
}

export function literal(value: unknown): string {
  if (value === true) return 'True'
  if (value === false) return 'False'
  return value === null ? 'None' : JSON.stringify(value)
}

export function docstring(text: string): string {
  return `"""${text.replaceAll('\\', '\\\\').replaceAll('"""', "'''").replace(/"$/, '" ')}"""`
}

function comment(text: string | undefined, indent: string): readonly string[] {
  if (text === undefined) return []
  const lines: string[] = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last === undefined || `${last} ${word}`.length > WIDTH) lines.push(`${indent}# ${word}`)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Breaks the arguments of a long type over lines, where the outermost brackets are. */
export function wrap(type: string, before: string): string {
  if (before.length + type.length <= WIDTH) return type
  const match = /^(\w+)\[(.*)\]$/s.exec(type)
  if (!match) return type
  const indent = /^ */.exec(before)?.[0] ?? ''
  const inner = splitArguments(match[2] ?? '').map((one) => `${indent}    ${wrap(one, `${indent}    `)},`)
  return `${match[1]}[\n${inner.join('\n')}\n${indent}]`
}

function splitArguments(text: string): readonly string[] {
  const parts: string[] = []
  let depth = 0
  let from = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '[') depth++
    else if (text[at] === ']') depth--
    else if (text[at] === ',' && depth === 0) {
      parts.push(text.slice(from, at).trim())
      from = at + 1
    }
  }
  return [...parts, text.slice(from).trim()]
}

function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('')
}

/** `maxPausedMs` → `max_paused_ms`; a word of Python gets a line after it. */
export function snake(name: string): string {
  const text = name.replaceAll(/[^A-Za-z0-9]+/g, '_').replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`)
  const lower = text.toLowerCase()
  return RESERVED.has(lower) ? `${lower}_` : lower
}
