import type { GuestRequest, HostMessage } from '@airlock/contract/guest'

export type ParsedMessage =
  | { readonly kind: 'message'; readonly message: HostMessage }
  /** With the id of the request, where there is one to answer. */
  | { readonly kind: 'invalid'; readonly requestId?: number }

type Check = (value: unknown) => boolean
type Shape = Readonly<Record<string, Check>>

/** The host is trusted, its version is not: what does not fit is refused as a whole. */
export function parseHostMessage(json: unknown): ParsedMessage {
  if (!isRecord(json)) return { kind: 'invalid' }
  const { type, ...fields } = json
  const shape = typeof type === 'string' && Object.hasOwn(MESSAGES, type) ? MESSAGES[type] : undefined
  if (shape && fits(fields, shape)) return { kind: 'message', message: json as HostMessage }
  return type === 'request' && isCount(json['id']) ? { kind: 'invalid', requestId: json['id'] } : { kind: 'invalid' }
}

const isText: Check = (value) => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isChannel: Check = (value) => isCount(value) && value >= 1 && value <= 0xffffffff
const isOneOf =
  (...values: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && values.includes(value)
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)

const isArgument: Check = (value) => typeof value === 'string' && !value.includes('\0')
const isEnv: Check = (value) =>
  isRecord(value) &&
  Object.entries(value).every(([name, text]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && isArgument(text))

/** It names a directory. */
const isId: Check = (value) => typeof value === 'string' && /^[a-z0-9_]{1,64}$/.test(value)

const COMMAND: Shape = {
  id: isId,
  channel: isChannel,
  argv: (value) => isListOf(isArgument)(value) && Array.isArray(value) && value.length > 0 && value[0] !== '',
  cwd: isText,
  env: isEnv,
  stdin: isOneOf('none', 'open'),
  timeoutMs: isCount,
  maxOutputBytes: isCount,
}

const SESSION: Shape = { id: isId, runtime: isOneOf('python', 'node', 'bash'), cwd: isText, env: isEnv }

/** What may be absent of a request. */
const OPTIONAL: Readonly<Partial<Record<GuestRequest['op'], Shape>>> = {
  'file.read': { exactly: (value) => isRecord(value) && fits(value, { maxBytes: isCount }) },
}

/** What may be absent of a command or a session. */
const LIMITS: Shape = { openFiles: isBound, cpuSeconds: isBound }
const LIMITED: Shape = { limits: (value) => isRecord(value) && fits(value, {}, LIMITS) }

const OF_COMMAND: Shape = { ...LIMITED, eventOutput: (value) => value === true }

const STEP: Shape = {
  id: isId,
  channel: isChannel,
  session: isId,
  code: isText,
  env: isEnv,
  stdin: isText,
  timeoutMs: isCount,
  maxOutputBytes: isCount,
}

const REQUESTS = {
  ping: {},
  token: { token: isText, lifeMs: isCount },
  run: { command: (value) => isRecord(value) && fits(value, COMMAND, OF_COMMAND) },
  signal: { channel: isChannel, signal: isText },
  forget: { channel: isChannel },
  'session.open': { session: (value) => isRecord(value) && fits(value, SESSION, LIMITED) },
  'session.list': {},
  'session.interrupt': { session: isId },
  'session.restart': { session: isId },
  'session.close': { session: isId },
  step: { step: (value) => isRecord(value) && fits(value, STEP) },
  'file.read': { path: isText, channel: isChannel },
  'file.find': { patterns: isListOf(isText), files: isCount, names: isCount },
  'file.write': { path: isText, mode: isOneOf('truncate', 'append'), channel: isChannel },
  'file.pack': { path: isText, channel: isChannel },
  'file.unpack': { path: isText, channel: isChannel },
  'file.stat': { path: isText },
  'file.list': { path: isText, limit: isCount },
  'file.mkdir': { path: isText, parents: isFlag },
  'file.move': { from: isText, to: isText },
  'file.remove': { path: isText, recursive: isFlag },
} as const satisfies Record<GuestRequest['op'], Shape>

const MESSAGES: Readonly<Record<string, Shape>> = {
  attach: { received: isListOf((item) => isRecord(item) && fits(item, { channel: isChannel, offset: isCount })) },
  request: { id: isCount, request: isRequest },
  ack: { channel: isChannel, offset: isCount },
  eof: { channel: isChannel },
  slept: { totalMs: isCount },
  cancel: { channel: isChannel },
} satisfies Record<HostMessage['type'], Shape>

function isRequest(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { op, ...fields } = value
  return isOp(op) && fits(fields, REQUESTS[op], OPTIONAL[op])
}

function isOp(value: unknown): value is GuestRequest['op'] {
  return typeof value === 'string' && Object.hasOwn(REQUESTS, value)
}

function fits(fields: Readonly<Record<string, unknown>>, shape: Shape, optional: Shape = {}): boolean {
  return (
    Object.keys(shape).every((name) => Object.hasOwn(fields, name)) &&
    Object.entries(fields).every(([name, value]) => checkOf(name, shape, optional)?.(value) ?? false)
  )
}

function checkOf(name: string, ...shapes: readonly Shape[]): Check | undefined {
  return shapes.find((shape) => Object.hasOwn(shape, name))?.[name]
}

function isBound(value: unknown): boolean {
  return isCount(value) && value > 0
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
