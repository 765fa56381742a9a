import { z } from 'zod'
import { id, name, plainText, time } from '../scalars.ts'
import { serviceOrigin } from './secret.ts'

/** What a program inside calls it. */
export const toolName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/, 'must be lower-case letters, digits, - or _')

export const TOOL_BOUNDS = {
  parameters: 32,
  /** JSON of the parameters of one call. */
  callBytes: 64 * 1024,
  /** Body of an answer, as the service sent it. */
  answerBytes: 1024 * 1024,
  timeoutMs: 30_000,
  scopes: 16,
  /** Text of one parameter. */
  textLength: 32_768,
} as const

export const TOOL_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const parameterName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_-]{0,62}$/)
const described = { description: plainText.max(512).optional() }
const textLength = z.int().min(0).max(TOOL_BOUNDS.textLength)
const text = z.strictObject({
  type: z.literal('string'),
  ...described,
  enum: z.array(plainText.max(512)).min(1).max(64).optional(),
  minLength: textLength.optional(),
  maxLength: textLength.optional(),
})
const integer = z.strictObject({
  type: z.literal('integer'),
  ...described,
  minimum: z.int().optional(),
  maximum: z.int().optional(),
})
const number = z.strictObject({
  type: z.literal('number'),
  ...described,
  minimum: z.number().optional(),
  maximum: z.number().optional(),
})
const truth = z.strictObject({ type: z.literal('boolean'), ...described })
const scalar = z.discriminatedUnion('type', [text, integer, number, truth])
const list = z.strictObject({
  type: z.literal('array'),
  ...described,
  items: scalar,
  maxItems: z.int().min(0).max(1000).optional(),
})
export const toolParameter = z.discriminatedUnion('type', [text, integer, number, truth, list])
export type ToolParameter = z.infer<typeof toolParameter>

/** A part of JSON Schema: each parameter with a type and bounds, and no parameter beside them. */
export const toolParameters = z.strictObject({
  type: z.literal('object').default('object'),
  properties: z
    .record(parameterName, toolParameter)
    .refine((all) => Object.keys(all).length <= TOOL_BOUNDS.parameters, `at most ${TOOL_BOUNDS.parameters} parameters`),
  required: z.array(parameterName).max(TOOL_BOUNDS.parameters).default([]),
})
export type ToolParameters = z.infer<typeof toolParameters>

/** Where the credential of a tool goes: into one header. */
const toolCredential = z.strictObject({
  secret: name,
  header: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be the name of a header in lower case')
    .refine((header) => !RESERVED_HEADERS.has(header), 'is a header that a tool cannot set')
    .default('authorization'),
  /** Before the value: `Bearer ` by default. */
  prefix: z
    .string()
    .regex(/^[\x20-\x7e]{0,64}$/)
    .optional(),
  /** HTTP basic authentication with this user and the secret as the password. */
  basicUser: z
    .string()
    .regex(/^[\x21-\x39\x3b-\x7e]{1,128}$/, 'must be visible ASCII without ":"')
    .optional(),
})

/** Headers that decide how a request is framed or where it goes. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'accept-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
])

const headers = z
  .record(
    z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be the name of a header in lower case')
      .refine((header) => !RESERVED_HEADERS.has(header), 'is a header that a tool cannot set')
      .refine((header) => !/^(?:authorization|cookie)$/.test(header), 'is a credential: use "credential"'),
    z.string().regex(/^[\x20-\x7e]{0,512}$/),
  )
  .refine((all) => Object.keys(all).length <= 16, 'at most 16 headers')

/** A path with parameters, such as `/repos/{owner}/{repo}/issues/{number}`. */
const pathTemplate = z
  .string()
  .max(1024)
  .regex(/^(?:\/(?:[A-Za-z0-9._~@:+,=-]|\{[A-Za-z_][A-Za-z0-9_-]{0,62}\})*)+$/, 'must be a path with {parameters}')
  .refine((path) => path.split('/').every((part) => part !== '.' && part !== '..'), 'must not have "." or ".."')

/** `*` stands for anything within one part of the path. */
const pathScope = z
  .string()
  .max(1024)
  .regex(/^(?:\/[A-Za-z0-9._~@:+,=*%-]*)+$/, 'must be a path; * stands for anything within one part of it')

const shape = {
  description: plainText.min(1).max(1024).describe('What a program inside reads about it.'),
  origin: serviceOrigin.describe('The service. Every call goes there, and no redirect is followed.'),
  method: z.enum(TOOL_METHODS),
  path: pathTemplate.describe('With {parameters}, such as /repos/{owner}/{repo}/issues.'),
  query: z.array(parameterName).max(TOOL_BOUNDS.parameters).default([]).describe('Parameters in the query.'),
  body: z.array(parameterName).max(TOOL_BOUNDS.parameters).default([]).describe('Parameters in a JSON object.'),
  headers: headers.default({}),
  parameters: toolParameters,
  scope: z
    .array(pathScope)
    .min(1)
    .max(TOOL_BOUNDS.scopes)
    .describe('Paths that a call may have after encoding. Any other is denied.'),
  credential: toolCredential.nullable().default(null),
  timeoutMs: z.int().min(1).max(TOOL_BOUNDS.timeoutMs).default(TOOL_BOUNDS.timeoutMs),
  maxAnswerBytes: z
    .int()
    .min(1)
    .max(TOOL_BOUNDS.answerBytes)
    .default(256 * 1024),
} as const

export const toolSpec = z.strictObject(shape)
export type ToolSpec = z.infer<typeof toolSpec>

export const putToolBody = toolSpec.superRefine((tool, context) => {
  for (const message of faultsOf(tool)) context.addIssue({ code: 'custom', message })
})
export type PutToolBody = z.infer<typeof putToolBody>
/** As a person writes it: members with a default may be absent. */
export type ToolInput = z.input<typeof putToolBody>

/** Names of the parameters in a path, in their order. */
export function pathParameters(path: string): readonly string[] {
  return [...path.matchAll(/\{([^}]*)\}/g)].map(([, parameter = '']) => parameter)
}

/** Each parameter has one place, and each place a parameter. */
function faultsOf({ method, path, query, body, parameters, credential }: ToolSpec): readonly string[] {
  const inPath = pathParameters(path)
  const placed = [...inPath, ...query, ...body]
  const { properties, required } = parameters
  const typeOf = (parameter: string) => (Object.hasOwn(properties, parameter) ? properties[parameter]?.type : undefined)
  return [
    ...placed.filter((one) => typeOf(one) === undefined).map((one) => `parameters: ${one} is not described`),
    ...placed.filter((one, at) => placed.indexOf(one) !== at).map((one) => `parameters: ${one} has two places`),
    ...Object.keys(properties)
      .filter((one) => !placed.includes(one))
      .map((one) => `parameters: ${one} is not in path, query or body`),
    ...required.filter((one) => typeOf(one) === undefined).map((one) => `required: ${one} is not described`),
    ...inPath.filter((one) => !required.includes(one)).map((one) => `path: ${one} must be required`),
    ...inPath.filter((one) => typeOf(one) === 'array').map((one) => `path: ${one} must not be an array`),
    ...(body.length > 0 && method === 'GET' ? ['body: GET has none'] : []),
    ...(credential?.basicUser !== undefined && credential.prefix !== undefined
      ? ['credential: prefix and basicUser exclude each other']
      : []),
  ]
}

export const tool = z.strictObject({
  name: toolName,
  tenant: id,
  ...shape,
  version: z.int(),
  createdAt: time,
  updatedAt: time,
  updatedBy: z.string(),
})
export type Tool = z.infer<typeof tool>
