import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { EGRESS_PORT, INSIDE, LLM_PORT } from '../guest/boot.ts'
import { matchedRule } from '../nouns/decision.ts'
import { tokenScope } from './sandbox-token.ts'
import { agentId, id, sandboxId, time } from '../nouns/scalars.ts'
import { closeModelCall, openModelCall } from './model-calls.ts'
import { closeNetworkCall, openNetworkCall } from './network-calls.ts'
import { closeToolCall, listToolsCall, openToolCall } from './tool-calls.ts'
import { isShallow } from './is-shallow.ts'
import { servedModel } from './served-model.ts'

/** Every kind of door. The permit of a sandbox lists those that it has. */
export const DOORS = ['control', 'llm', 'egress', 'broker'] as const
export const doorName = z.enum(DOORS)
export type DoorName = z.infer<typeof doorName>

/** The doors of a template, a sandbox or a permit: each at most once. */
export const doorNames = z
  .array(doorName)
  .max(DOORS.length)
  .refine((doors) => new Set(doors).size === doors.length, 'must not repeat')

/** The socket of each door, in the directory of the door. */
export const DOOR_SOCKETS: Readonly<Record<DoorName, string>> = {
  control: 'airlock.sock',
  llm: 'llm.sock',
  egress: 'egress.sock',
  broker: 'broker.sock',
}

/** Names one configuration of a door: two of the same version are the same. */
const configVersion = z.string().min(1).max(256)

/** Bound on the models of one sandbox, the demo included. */
export const MAX_DOOR_MODELS = 16_384

/** What the control plane tells the doors process about one open door. Each kind has a row. */
export const doorConfig = z.discriminatedUnion('door', [
  z.strictObject({ door: z.literal('control'), version: configVersion }),
  z.strictObject({
    door: z.literal('llm'),
    version: configVersion,
    /** Memory and threads of the door are divided between tenants. */
    tenant: id,
    /** Every model that the sandbox may name, with its prices. No key and no address of an upstream is in it. */
    models: z.array(servedModel).max(MAX_DOOR_MODELS),
  }),
  z.strictObject({ door: z.literal('egress'), version: configVersion }),
  z.strictObject({ door: z.literal('broker'), version: configVersion }),
])
export type DoorConfig = z.infer<typeof doorConfig>

/**
 * What the doors and the control plane say to each other, over two unix sockets, each of which only the other can open. The
 * control plane tells the doors what is open by HTTP with JSON. Errors are `{error: {code, message}}` with registry codes.
 *
 * | at the doors | body → answer |
 * |---|---|
 * | `GET /doors` | → `openDoors`; the open doors of each sandbox |
 * | `GET /upstreams` | → `keysHealth`, as `keys` answers it; `not_ready` when it does not |
 * | `PUT /doors/:sandbox` | `openDoorsRequest` → `{}`; idempotent: exactly these doors are open then, configured so |
 * | `DELETE /doors/:sandbox` | → `{}`; idempotent: its doors are closed and their connections cut |
 *
 * The doors ask on one connection to the control plane that they keep: JSON lines, `fromDoors` one way and
 * `fromControlPlane` the other. Both sides say `hello` first.
 */
const openDoor = z.strictObject({ door: doorName, version: configVersion })
export const openDoors = z.strictObject({
  sandboxes: z.array(z.strictObject({ sandbox: sandboxId, doors: z.array(openDoor) })),
})
/** The open doors of one sandbox. */
export type OpenDoors = z.infer<typeof openDoors>['sandboxes'][number]
export const openDoorsRequest = z.strictObject({
  doors: z
    .array(doorConfig)
    .max(DOORS.length)
    .refine((doors) => new Set(doors.map(({ door }) => door)).size === doors.length, 'must not repeat'),
})

/** More levels than a person reads. */
const DETAIL_LEVELS = 6

/** Whether a person can be shown all of it. Nothing is followed deeper than the bound. */
function isShowable(value: unknown): boolean {
  return isShallow(value, DETAIL_LEVELS) && Buffer.byteLength(JSON.stringify(value)) <= BOUNDS.askDetailBytes
}

/** What a program inside asks Guardian for. */
export const askBody = z.strictObject({
  action: z.string().regex(/^[a-z0-9._-]{1,64}$/, 'must be 1 to 64 of a-z, 0-9, ".", "_" and "-"'),
  detail: z
    .unknown()
    .refine(isShowable, {
      error: `must be JSON of at most ${BOUNDS.askDetailBytes} bytes and ${DETAIL_LEVELS} levels`,
      abort: true,
    })
    .pipe(z.record(z.string(), z.json()))
    .optional(),
  waitSeconds: z
    .int()
    .min(0)
    .max(BOUNDS.approvalWaitMs / 1000)
    .default(0),
})
export type AskBody = z.infer<typeof askBody>

/** Every time when it was allowed; a refusal is an error. */
export const askAnswer = z.strictObject({ allowed: z.literal(true), rules: z.array(matchedRule) })
export type AskAnswer = z.infer<typeof askAnswer>

const cameFrom = { sandbox: sandboxId, token: z.string().max(8192).nullable() }

/** What came in by a door. The doors say which sandbox: the one whose socket it was. */
export const controlCall = z.discriminatedUnion('ask', [
  z.strictObject({ ...cameFrom, ask: z.literal(['self', 'heartbeat', 'renew']) }),
  z.strictObject({ ...cameFrom, ask: z.literal('ask'), requestId: z.string().regex(/^req_[0-9a-z]+$/), body: askBody }),
])
export type ControlCall = z.infer<typeof controlCall>

/**
 * A call of a model that begins or ends. `model.open` answers `openedModelCall`. A call whose `model.open` was cancelled is
 * closed as `unsent` by the control plane. `model.close` answers `{}`, also for a call that is closed already.
 */
export const modelCall = z.discriminatedUnion('ask', [
  openModelCall.extend({ ask: z.literal('model.open') }),
  closeModelCall.extend({ ask: z.literal('model.close'), sandbox: sandboxId }),
])
export type ModelCallAsk = z.infer<typeof modelCall>

/**
 * A connection to a host that begins or ends. `network.open` answers `openedNetworkCall`. A connection whose `network.open` was
 * cancelled is closed by the control plane. `network.close` answers `{}`, also for one that is closed already.
 */
export const networkCall = z.discriminatedUnion('ask', [
  openNetworkCall.extend({ ask: z.literal('network.open') }),
  closeNetworkCall.extend({ ask: z.literal('network.close') }),
])
export type NetworkCallAsk = z.infer<typeof networkCall>

/**
 * A program looks at its tools, or a call of one begins or ends. `tool.list` answers `toolsInside`, `tool.open` answers
 * `openedToolCall`. A call whose `tool.open` was cancelled is closed by the control plane. `tool.close` answers `{}`, also for a
 * call that is closed already.
 */
const toolCall = z.discriminatedUnion('ask', [
  listToolsCall.extend({ ask: z.literal('tool.list') }),
  openToolCall.extend({ ask: z.literal('tool.open') }),
  closeToolCall.extend({ ask: z.literal('tool.close') }),
])

/** Every call of the kept connection. */
export const doorCall = z.union([controlCall, modelCall, networkCall, toolCall])
export type DoorCall = z.infer<typeof doorCall>

/** Rises when a frame changes its meaning: two sides that speak different protocols do not talk. */
export const DOORS_PROTOCOL = 4

/** Calls of models that one `hello` names. */
export const MAX_NAMED_CALLS = 20_000

/** Calls of one connection without an answer. Whoever sends more has broken the protocol. */
export const MAX_DOOR_CALLS = 4096

const callId = z.int().min(1)

/** What the doors say on the kept connection. */
export const fromDoors = z.discriminatedUnion('type', [
  /**
   * `process`: a random text for each start of the doors. Calls of models that an earlier process opened are lost. `modelCalls`: those that
   * this process has open, or has not reported yet; null when they are too many to be named.
   */
  z.strictObject({
    type: z.literal('hello'),
    protocol: z.int(),
    process: z.string().min(1).max(64),
    modelCalls: z.array(z.string().max(64)).max(MAX_NAMED_CALLS).nullable(),
  }),
  z.strictObject({ type: z.literal('call'), id: callId, call: doorCall }),
  /** Nobody waits for the answer of this call any more. */
  z.strictObject({ type: z.literal('cancel'), id: callId }),
  z.strictObject({ type: z.literal('ping') }),
])
export type FromDoors = z.infer<typeof fromDoors>

/**
 * What no longer holds for sandboxes. `revoked`: their tokens. `shut`: they have no doors any more. `paused`: they do not run.
 * `policy`: what was decided under the rules before; null is all sandboxes.
 */
export const doorsChange = z.strictObject({
  what: z.enum(['revoked', 'shut', 'paused', 'policy']),
  sandboxes: z.array(sandboxId).nullable(),
})
export type DoorsChange = z.infer<typeof doorsChange>

/** What the control plane says on the kept connection. */
export const fromControlPlane = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('hello'), protocol: z.int() }),
  /** `value` is `self`, `renewedToken`, `askAnswer`, `openedModelCall`, `openedNetworkCall`, `toolsInside`, `openedToolCall` or `{}`, by what was asked. */
  z.strictObject({ type: z.literal('answer'), id: callId, value: z.unknown() }),
  z.strictObject({
    type: z.literal('refusal'),
    id: callId,
    error: z.strictObject({
      code: z.string(),
      message: z.string(),
      hint: z.string(),
      retryAfterS: z.number().optional(),
      approval: z.string().optional(),
    }),
  }),
  z.strictObject({ type: z.literal('changed'), change: doorsChange }),
  /** These connections to hosts, and calls of tools, are not allowed any more. */
  z.strictObject({ type: z.literal('cut'), sandbox: sandboxId, connections: z.array(z.string()).max(1000) }),
  z.strictObject({ type: z.literal('pong') }),
])
export type FromControlPlane = z.infer<typeof fromControlPlane>

/** Who the program inside is, to us. */
export const self = z.strictObject({
  sandbox: sandboxId,
  tenant: id,
  agent: agentId,
  generation: z.int(),
  scopes: z.array(tokenScope),
  expiresAt: time.describe('Of the token.'),
  sandboxExpiresAt: time,
})
export type Self = z.infer<typeof self>

export const renewedToken = z.strictObject({ token: z.string(), lifeMs: z.int(), expiresAt: time })
export type RenewedToken = z.infer<typeof renewedToken>

const LLM_ORIGIN = `http://127.0.0.1:${LLM_PORT}`
/** SDKs refuse to start without a key. */
const PLACEHOLDER = 'placeholder-the-server-holds-the-key'

/** What unmodified clients of models read. */
const LLM_ENV: Readonly<Record<string, string>> = {
  OPENAI_BASE_URL: `${LLM_ORIGIN}/v1`,
  OPENAI_API_BASE: `${LLM_ORIGIN}/v1`,
  OPENAI_API_KEY: PLACEHOLDER,
  ANTHROPIC_BASE_URL: LLM_ORIGIN,
  ANTHROPIC_API_KEY: PLACEHOLDER,
}

const EGRESS_ORIGIN = `http://127.0.0.1:${EGRESS_PORT}`

/** What clients of HTTP read. Programs differ in the case that they look for. */
const EGRESS_ENV: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => inBothCases(name, EGRESS_ORIGIN))),
  NODE_USE_ENV_PROXY: '1',
}

/** The loopback of the sandbox is its own: servers and doors there are dialled directly. */
const NO_PROXY = Object.fromEntries(inBothCases('NO_PROXY', '127.0.0.1,localhost'))

function inBothCases(name: string, value: string): [string, string][] {
  return [
    [name, value],
    [name.toLowerCase(), value],
  ]
}

/** What programs inside are told: who their sandbox is, and how its door is reached if it has one. */
export function doorEnv(of: {
  readonly sandbox: string
  readonly agent: string
  readonly doors: readonly DoorName[]
}): Readonly<Record<string, string>> {
  const door = { AIRLOCK_SOCKET: INSIDE.doorSocket, AIRLOCK_TOKEN_FILE: INSIDE.token }
  return {
    ...(of.doors.includes('control') ? door : {}),
    ...(of.doors.includes('llm') ? LLM_ENV : {}),
    ...(of.doors.includes('egress') ? EGRESS_ENV : {}),
    ...(of.doors.includes('broker') ? { AIRLOCK_TOOLS_SOCKET: INSIDE.toolsSocket } : {}),
    ...(of.doors.some((name) => name === 'llm' || name === 'egress') ? NO_PROXY : {}),
    AIRLOCK_SANDBOX_ID: of.sandbox,
    AIRLOCK_AGENT_ID: of.agent,
  }
}

/** What a program inside needs to reach us. */
export const connection = z.strictObject({
  sandbox: sandboxId,
  agent: agentId,
  generation: z.int(),
  socket: z.string().describe('Inside: a unix socket that speaks HTTP.'),
  tokenFile: z.string().describe('Inside: the token that is good now; read it at each use.'),
  env: z.record(z.string(), z.string()).describe('What programs inside are started with.'),
  scopes: z.array(tokenScope),
  expiresAt: time.describe('When the token that was just given ends, unless it is renewed before.'),
})
export type Connection = z.infer<typeof connection>

export const connectSandboxBody = z.strictObject({
  revoke: z.boolean().default(false).describe('Every token that was given out before opens nothing from now on.'),
})
export type ConnectSandboxBody = z.infer<typeof connectSandboxBody>
