import type { GuestRuntime } from '@airlock/contract/guest'
import { AgentFault } from './agent-fault.ts'

export interface RegisterBody {
  readonly sessionId: string
  readonly runtime: GuestRuntime
  readonly token?: string
  readonly workspaceDir?: string
}

export interface StepBody {
  readonly sessionId: string
  readonly stepId: string
  readonly code: string
  readonly runtime?: GuestRuntime
  readonly timeoutMs?: number
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
}

const TEXT_BYTES = 1024 * 1024
const ENV_BYTES = 64 * 1024
const ENV_COUNT = 128
const PATH_BYTES = 4095
const LONGEST_MS = 24 * 60 * 60 * 1000
const TOKEN_LENGTH = { min: 16, max: 512 }

type Check = (value: unknown) => boolean
type Shape = Readonly<Record<string, { readonly check: Check; readonly must: string; readonly optional?: true }>>

const isId: Check = (value) => typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(value)
const isRuntime: Check = (value) => value === 'python' || value === 'node' || value === 'bash'
const isText =
  (bytes: number): Check =>
  (value) =>
    typeof value === 'string' && Buffer.byteLength(value) <= bytes && !value.includes('\0')
const isEnv: Check = (value) =>
  isRecord(value) &&
  Object.keys(value).length <= ENV_COUNT &&
  JSON.stringify(value).length <= ENV_BYTES &&
  Object.entries(value).every(([name, text]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && isText(ENV_BYTES)(text))

const ID = { check: isId, must: 'be 1 to 128 letters, digits, ".", ":", "-" or "_"' }
const RUNTIME = { check: isRuntime, must: 'be python, node or bash' }
const TEXT = { check: isText(TEXT_BYTES), must: `be text without NUL of at most ${TEXT_BYTES} bytes` }

const REGISTER: Shape = {
  sessionId: ID,
  runtime: RUNTIME,
  token: { check: isToken, must: 'be a token', optional: true },
  workspaceDir: {
    check: (value) => isText(PATH_BYTES)(value) && typeof value === 'string' && value.startsWith('/'),
    must: 'be an absolute path',
    optional: true,
  },
}

const STEP: Shape = {
  sessionId: ID,
  stepId: ID,
  code: TEXT,
  runtime: { ...RUNTIME, optional: true },
  timeoutMs: {
    check: (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= LONGEST_MS,
    must: `be 1 to ${LONGEST_MS}`,
    optional: true,
  },
  env: { check: isEnv, must: `be at most ${ENV_COUNT} variables of at most ${ENV_BYTES} bytes`, optional: true },
  stdin: { ...TEXT, optional: true },
}

export function parseRegister(json: unknown): RegisterBody {
  throwUnlessFits(json, REGISTER)
  return json as unknown as RegisterBody
}

export function parseStep(json: unknown): StepBody {
  throwUnlessFits(json, STEP)
  return json as unknown as StepBody
}

/** The token that a caller sent; without one it is nobody. */
export function parseToken(header: string | readonly string[] | undefined): string {
  if (header === undefined || header === '') throw new AgentFault('unauthenticated', 'there is no session token')
  if (typeof header === 'string' && isToken(header)) return header
  const { min, max } = TOKEN_LENGTH
  throw new AgentFault('invalid_request', `a session token has ${min} to ${max} printable characters`)
}

function isToken(value: unknown): boolean {
  const { min, max } = TOKEN_LENGTH
  return typeof value === 'string' && value.length >= min && value.length <= max && /^[\x21-\x7e]+$/.test(value)
}

function throwUnlessFits(json: unknown, shape: Shape): asserts json is Readonly<Record<string, unknown>> {
  if (!isRecord(json)) throw new AgentFault('invalid_request', 'the body must be a JSON object')
  for (const name of Object.keys(json))
    if (!Object.hasOwn(shape, name)) throw new AgentFault('invalid_request', `${JSON.stringify(name)} is not known`)
  for (const [name, { check, must, optional }] of Object.entries(shape)) {
    const value = Object.hasOwn(json, name) ? json[name] : undefined
    if (value === undefined ? !optional : !check(value)) throw new AgentFault('invalid_request', `${name} must ${must}`)
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
