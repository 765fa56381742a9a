import { type AddGrantBody, AirlockError, BOUNDS, type Grant, overlaps, type Point } from '@airlock/contract'
import { INSIDE } from '@airlock/contract/guest'
import { newId } from '@airlock/std'
import { findAgent, type AgentKey } from '../store/agents.ts'
import { insertGrant, listGrants, type StoredGrant, takeGrant } from '../store/grants.ts'
import type { Queries } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import type { GrantEnds } from './grant-ends.ts'
import { WORKTREE_TARGET } from './granted-worktree.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { isOwned } from '../sandboxes/owned-sandbox.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import { ownedTenant } from '../tenants/tenants.ts'

type World = Pick<Context, 'store' | 'node' | 'audit' | 'clock' | 'dataPlane' | 'guardian'>
type Ends = Pick<GrantEnds, 'endHoldersOf'>

interface Asked {
  readonly agent: string
  readonly tenant?: string | undefined
}

/**
 * Host paths that agents may see. A grant is about the host, so only the platform gives one, to an agent of any tenant;
 * who watches over a tenant may see them and take them back. Whether a path may be granted at all says the data plane, which
 * alone can look.
 */
export class Grants {
  readonly #world: World
  readonly #ends: Ends

  constructor(world: World, ends: Ends) {
    this.#world = world
    this.#ends = ends
  }

  /** Sandboxes that live do not get it; the next one does. */
  async add(caller: Caller, agent: string, body: AddGrantBody): Promise<Grant> {
    const { store, guardian } = this.#world
    const { path, mode, allowed, blocked, kind = null, target = null, tenant = null } = body
    const asked = { path, mode, allowed, blocked, kind, target, tenant }
    const wanted = await recordRefusal(this.#world, grantDeed(caller, 'grant.add', { agent, asked }), async () => {
      assertUnbound(caller)
      const key = await this.#agentOf(caller, { agent, tenant: body.tenant })
      const fresh = await this.#newGrant(caller, key, body)
      await store.query((db) => assertRoom(db, fresh))
      return fresh
    })
    const deed = grantDeed(caller, 'grant.add', { ...wanted, grant: wanted.id, asked })
    const passed = await guardian.pass(caller, deed, { kind: 'mount', path, mode })
    const isNarrowed = passed.decision.conditions.readOnly && mode === 'rw'
    const row: StoredGrant = isNarrowed ? { ...wanted, mode: 'ro' } : wanted
    return doRecorded(this.#world, passed, async () => {
      await this.#insert(row)
      return { value: toGrant(row), payload: { kind: row.kind, target: row.target, mode: row.mode } }
    })
  }

  /** Oldest first, of all nodes. */
  async list(caller: Caller, asked: Asked): Promise<readonly Grant[]> {
    const { store } = this.#world
    const key = await this.#agentOf(caller, asked)
    return (await store.query((db) => listGrants(db, key))).map(toGrant)
  }

  /** Resolves when the sandboxes of this node that held it are gone, or cannot be ended now. */
  async remove(caller: Caller, asked: Asked & { readonly grant: string }): Promise<void> {
    const { store, audit } = this.#world
    const { agent, grant, tenant = null } = asked
    const refused = grantDeed(caller, 'grant.remove', { agent, grant, asked: { tenant } })
    const row = await recordRefusal(this.#world, refused, async () => {
      const key = await this.#agentOf(caller, asked)
      assertUnbound(caller)
      const taken = await store.transaction((db) => takeGrant(db, { ...key, id: grant }))
      if (!taken) throw new AirlockError('grant_not_found')
      return taken
    })
    const { path, mode, target } = row
    audit.note({
      ...grantDeed(caller, 'grant.remove', { ...row, grant: row.id, asked: { path, mode, target } }),
      status: 'done',
    })
    const { actor } = caller.principal
    await this.#ends.endHoldersOf(row, { reason: 'grant_revoked', actor, requestId: caller.requestId })
  }

  async #insert(row: StoredGrant): Promise<void> {
    const { store } = this.#world
    try {
      await store.transaction(async (db) => {
        if (!(await findAgent(db, row))) throw new AirlockError('agent_not_found')
        await assertRoom(db, row)
        await insertGrant(db, row)
      })
    } catch (error) {
      if (store.isTaken(error)) throw new AirlockError('grant_exists', undefined, { cause: error })
      throw error
    }
  }

  /** The agent that the caller means. Not yours is not found; the platform reaches every tenant. */
  async #agentOf(caller: Caller, asked: Asked): Promise<AgentKey> {
    const { store } = this.#world
    const { principal } = caller
    const tenant = asked.tenant ?? principal.tenant
    await ownedTenant(store, principal, tenant)
    const key = { tenant, agent: asked.agent }
    const isVisible = tenant !== principal.tenant || isOwned(principal, key)
    if (!isVisible || !(await store.query((db) => findAgent(db, key)))) throw new AirlockError('agent_not_found')
    return key
  }

  async #newGrant(caller: Caller, key: AgentKey, body: AddGrantBody): Promise<StoredGrant> {
    const { clock, dataPlane, node } = this.#world
    const { path, mode, allowed, blocked } = body
    const isWorktree = mode === 'worktree'
    const target = isWorktree ? `worktree:${path}` : (body.target ?? defaultTarget(path))
    const found = await dataPlane.lookAtPath({ path, mode, kind: body.kind ?? null, target })
    // A repository that cannot be used is refused now, and not when somebody needs it.
    if (isWorktree) await dataPlane.findCommit({ path, dev: found.dev, ino: found.ino, at: null })
    if (found.kind === 'file' && allowed.length + blocked.length > 0)
      throw new AirlockError('grant_refused', 'Patterns are for directories.')
    const now = clock.now()
    const made = { id: newId('grt', now), createdAt: now, createdBy: caller.principal.actor, node: node.id }
    return { ...made, ...key, ...found, path, mode, allowed, blocked, target }
  }
}

async function assertRoom(db: Queries, fresh: StoredGrant): Promise<void> {
  const there = await listGrants(db, fresh)
  const inTheWay = there.find((other) => other.id !== fresh.id && overlaps(other, fresh))
  if (inTheWay) throw new AirlockError('grant_exists', `${inTheWay.target} is taken by ${inTheWay.path}.`)
  if (there.length >= BOUNDS.grants) throw new AirlockError('too_many_grants')
}

/** A name that would need quoting in a path gets another character for each that does. */
function defaultTarget(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return `${INSIDE.grants}/${name.replaceAll(/[^\w.@+-]/gu, '_')}`
}

interface About {
  readonly tenant?: string | undefined
  readonly agent: string
  readonly grant?: string
  readonly asked?: Deed['payload']
}

/** A tenant that the caller only named does not get records of it: `tenant` is that of a row. */
function grantDeed(caller: Caller, point: Point, about: About): Deed {
  const { principal, requestId } = caller
  const { agent, tenant = principal.tenant, grant, asked } = about
  const payload = { requestId, ...(grant === undefined ? {} : { grant }), ...asked }
  return { point, tenant, agent, sandbox: null, actor: principal.actor, payload }
}

function toGrant({ dev: _dev, ino: _ino, ...row }: StoredGrant): Grant {
  const target = row.mode === 'worktree' ? WORKTREE_TARGET : row.target
  return { ...row, target, createdAt: new Date(row.createdAt).toISOString() }
}
