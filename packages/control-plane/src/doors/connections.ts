import {
  AirlockError,
  type Connection,
  type ConnectSandboxBody,
  type DoorConfig,
  doorEnv,
  isAirlockError,
  type OpenDoors,
  TOKEN_SCOPES,
} from '@airlock/contract'
import { INSIDE } from '@airlock/contract/guest'
import { deadline, waitFor } from '@airlock/std'
import { assertUsable } from '../sandboxes/admit.ts'
import { configsOf } from './sandbox-doors.ts'
import type { IssuedToken } from './sandbox-tokens.ts'
import { findAgent } from '../store/agents.ts'
import { voidTokensBefore } from '../store/sandbox-tokens.ts'
import { findSandbox, listLiving, type StoredSandbox } from '../store/sandboxes.ts'
import type { Activity } from '../sandboxes/activity.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { deedOf, doRecorded } from '../evidence/evidence.ts'
import { isEnded } from '../sandboxes/lifecycle.ts'
import { usableSandbox } from '../sandboxes/owned-sandbox.ts'
import { recordRefusal } from '../evidence/refusals.ts'

/** Doors that were killed are back by then. */
const DOORS_BACK_MS = 5_000
const RETRY_MS = 50
/** A guest that did not take a token is given another after this long. */
const AGAIN_MS = 30_000
/** Tokens under way at once that nobody waits for. */
const MAX_GIVEN_AT_ONCE = 16

/**
 * How sandboxes reach us: their doors, and the tokens that they use there. A door is open as long as its sandbox lives,
 * whoever is restarted meanwhile: each look makes the doors agree with the store.
 */
export class Connections {
  readonly #context: Context
  readonly #activity: Activity
  /** Until when the latest token of each sandbox is good, as far as this process knows. */
  readonly #goodUntil = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<void>>()
  /** Made by an earlier version, without a place for doors: nothing can be mounted in what runs. */
  readonly #doorless = new Set<string>()

  constructor(context: Context, activity: Activity) {
    this.#context = context
    this.#activity = activity
  }

  /** Opens the doors of a sandbox and gives it a token. Precondition: it runs. */
  async open(row: StoredSandbox, at = this.#context.clock.now()): Promise<IssuedToken> {
    const [token] = await Promise.all([this.#give(row, at), this.#openDoors(row)])
    return token
  }

  /** The first of what ends a sandbox. Never fails and never takes long: what stays open is shut by a later look. */
  async close(id: string): Promise<void> {
    this.#goodUntil.delete(id)
    this.#context.doorNews.publish({ what: 'shut', sandboxes: [id] })
    await this.#context.doors
      .shut(id)
      .catch((error: unknown) => this.#context.log.warn('a door is not shut yet', { sandbox: id, error }))
  }

  /** On behalf of a caller: a new token, and what a program inside needs to use it. */
  async connect(caller: Caller, id: string, body: ConnectSandboxBody): Promise<Connection> {
    const { store, guardian, doorNews } = this.#context
    const row = await usableSandbox(this.#context, caller, id)
    const wanted = deedOf(caller, row, { point: 'sandbox.connect', payload: { revoke: body.revoke } })
    await recordRefusal(this.#context, wanted, async () => this.#assertCurrent(row))
    const deed = await guardian.pass(caller, wanted)
    return doRecorded(this.#context, deed, async () => {
      // Strictly after whatever was issued in this very moment.
      const at = this.#context.clock.now() + 1
      if (body.revoke) {
        await store.transaction((db) => voidTokensBefore(db, row.id, at))
        doorNews.publish({ what: 'revoked', sandboxes: [row.id] })
      }
      const token = await this.open(row, at)
      await this.#activity.touch(row)
      return { value: toConnection(row, token), payload: payloadOf(row, token) }
    })
  }

  /** What the evidence says of a connection that nobody asked for by itself. */
  note(row: StoredSandbox, token: IssuedToken, by: { readonly actor: string; readonly cause: string }): void {
    const { tenant, agent, id: sandbox } = row
    const payload = { cause: by.cause, ...payloadOf(row, token) }
    const record = {
      tenant,
      agent,
      sandbox,
      actor: by.actor,
      point: 'sandbox.connect',
      status: 'done',
      payload,
    } as const
    this.#context.audit.note(record)
  }

  /** The sandbox has renewed its token by itself. */
  renewed(id: string, token: IssuedToken): void {
    this.#goodUntil.set(id, token.expiresAt)
  }

  /** One look of the sweep. Nobody is waited for who may take long. */
  async look(): Promise<void> {
    const { store, node, doors, kills } = this.#context
    const open = new Map((await doors.list()).map((one) => [one.sandbox, one.doors]))
    // Read after the doors: a door is opened after its row is there, and so one without a row has lost it.
    const living = await store.query((db) => listLiving(db, node.id))
    const isKilled = (row: StoredSandbox) => kills.covers({ tenant: row.tenant, agent: row.agent, sandbox: row.id })
    const active = living.filter((row) => row.state === 'active' && !isKilled(row))
    for (const row of active) if (!isAsWanted(this.#configsOf(row), open.get(row.id))) await this.#openAgain(row)
    for (const id of open.keys()) if (!active.some((row) => row.id === id)) await this.#shutIfEnded(id)
    const known = new Set(active.map(({ id }) => id))
    for (const id of this.#goodUntil.keys()) if (!known.has(id)) this.#goodUntil.delete(id)
    for (const id of this.#doorless) if (!known.has(id)) this.#doorless.delete(id)
    for (const row of active) if (!this.#doorless.has(row.id)) this.#refresh(row)
  }

  /** Waits for the tokens under way, however they go. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  /** Gives a token to a sandbox whose own ran out, or of which this process does not know: it may have slept, or we. */
  #refresh(row: StoredSandbox): void {
    const { clock, log } = this.#context
    const until = this.#goodUntil.get(row.id)
    if ((until ?? 0) > clock.now() || this.#underWay.has(row.id) || this.#underWay.size >= MAX_GIVEN_AT_ONCE) return
    this.#goodUntil.set(row.id, clock.now() + AGAIN_MS)
    const work = this.#give(row, clock.now())
      .then((token) =>
        this.note(row, token, { actor: 'system', cause: until === undefined ? 'server started' : 'token ran out' }),
      )
      .catch((error: unknown) => log.warn('a sandbox did not take its token', { sandbox: row.id, error }))
      .finally(() => this.#underWay.delete(row.id))
    this.#underWay.set(row.id, work)
  }

  async #give(row: StoredSandbox, at: number): Promise<IssuedToken> {
    const { sandboxTokens, dataPlane } = this.#context
    const token = sandboxTokens.issue(row, at)
    await dataPlane.giveToken(row.id, { token: token.text, lifeMs: token.lifeMs })
    this.#goodUntil.set(row.id, token.expiresAt)
    return token
  }

  /** One that cannot be opened must not keep the others shut. */
  async #openAgain(row: StoredSandbox): Promise<void> {
    const { doors, log } = this.#context
    const { id } = row
    if (this.#doorless.has(id)) return
    try {
      await doors.open(id, this.#configsOf(row))
    } catch (error) {
      if (!isAirlockError(error) || error.code === 'door_unavailable') throw error
      if (error.code === 'sandbox_not_found') this.#doorless.add(id)
      log.warn('a door cannot be opened', { sandbox: id, error })
    }
  }

  async #openDoors(row: StoredSandbox): Promise<void> {
    const attempt = async () =>
      this.#context.doors.open(row.id, this.#configsOf(row)).then(
        () => true,
        (error: unknown) => {
          if (isAirlockError(error) && error.code === 'door_unavailable') return undefined
          throw isAirlockError(error) && error.code === 'sandbox_not_found' ? noDoor(error) : error
        },
      )
    const until = deadline(DOORS_BACK_MS)
    await waitFor(attempt, { signal: until, everyMs: RETRY_MS }).catch((error: unknown) => {
      throw until.aborted ? new AirlockError('door_unavailable', undefined, { cause: error }) : error
    })
  }

  #configsOf(row: StoredSandbox): DoorConfig[] {
    return configsOf(row, this.#context.models.served(row.models))
  }

  async #shutIfEnded(id: string): Promise<void> {
    const row = await this.#context.store.query((db) => findSandbox(db, id))
    if (!row || isEnded(row.state)) await this.close(id)
  }

  /** Whoever was fenced off gets no token that would be refused anyway. */
  async #assertCurrent(row: StoredSandbox): Promise<void> {
    const agent = await this.#context.store.query((db) => findAgent(db, row))
    if (!agent) throw new AirlockError('agent_not_found')
    assertUsable(agent)
    if (agent.generation !== row.generation) throw new AirlockError('stale_generation')
  }
}

function noDoor(cause: AirlockError): AirlockError {
  return new AirlockError('door_unavailable', 'The sandbox was made without a place for doors.', {
    cause,
    hint: 'Create another: one from before the server was upgraded gets none.',
  })
}

/** Whether exactly the doors of a sandbox are open, each with the configuration that it has now. */
function isAsWanted(wanted: readonly DoorConfig[], open: OpenDoors['doors'] = []): boolean {
  const isOpen = ({ door, version }: DoorConfig) => open.some((one) => one.door === door && one.version === version)
  return wanted.length === open.length && wanted.every(isOpen)
}

function toConnection(row: StoredSandbox, token: IssuedToken): Connection {
  const { id: sandbox, agent, generation, doors } = row
  return {
    sandbox,
    agent,
    generation,
    socket: INSIDE.doorSocket,
    tokenFile: INSIDE.token,
    env: doorEnv({ sandbox, agent, doors }),
    scopes: [...TOKEN_SCOPES],
    expiresAt: new Date(token.expiresAt).toISOString(),
  }
}

/** Which token, never the token. */
function payloadOf({ doors }: StoredSandbox, { tokenId: id, expiresAt }: IssuedToken) {
  return { doors, issued: id, expiresAt: new Date(expiresAt).toISOString() }
}
