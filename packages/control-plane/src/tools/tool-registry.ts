import { AirlockError, BOUNDS, type PutToolBody, type Tool } from '@airlock/contract'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import { findTool, listTools, putTool, type StoredTool, takeTool } from '../store/tools.ts'
import { assertUnbound } from '../tenants/overseer.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'guardian'>

/** Services of a tenant that its sandboxes may be allowed to call. Not yours is not found. */
export class ToolRegistry {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async list(caller: Caller): Promise<readonly Tool[]> {
    const rows = await this.#world.store.query((db) => listTools(db, caller.principal.tenant))
    return rows.map(toTool)
  }

  async get(caller: Caller, name: string): Promise<Tool> {
    const row = await this.#world.store.query((db) => findTool(db, { tenant: caller.principal.tenant, name }))
    if (!row) throw new AirlockError('tool_not_found')
    return toTool(row)
  }

  /** From the next call on. */
  async put(caller: Caller, name: string, spec: PutToolBody): Promise<Tool> {
    const { store, clock, guardian } = this.#world
    const { tenant, actor } = caller.principal
    const { origin, method, path, scope, credential } = spec
    const said = { tool: name, origin, method, path, scope, sealedName: credential?.secret ?? null }
    const deed = deedOf(caller, 'tool.put', said)
    await recordRefusal(this.#world, deed, async () => assertUnbound(caller))
    return doRecorded(this.#world, await guardian.pass(caller, deed), async () => {
      const now = clock.now()
      const row = await store.transaction(async (db) => {
        const all = await listTools(db, tenant)
        const before = all.find((one) => one.name === name)
        if (!before && all.length >= BOUNDS.tools) throw new AirlockError('too_many_tools')
        const { version = 0, createdAt = now } = before ?? {}
        const next = { tenant, name, spec, version: version + 1, createdAt, updatedAt: now, updatedBy: actor }
        await putTool(db, next)
        return next
      })
      return { value: toTool(row), payload: { version: row.version } }
    })
  }

  /** It reduces: nothing is waited for but the row. */
  async remove(caller: Caller, name: string): Promise<void> {
    const { store, audit } = this.#world
    assertUnbound(caller)
    const row = await store.transaction((db) => takeTool(db, { tenant: caller.principal.tenant, name }))
    if (!row) throw new AirlockError('tool_not_found')
    audit.note({ ...deedOf(caller, 'tool.remove', { tool: name, version: row.version }), status: 'done' })
  }
}

function deedOf(caller: Caller, point: 'tool.put' | 'tool.remove', payload: Deed['payload']): Deed {
  const { tenant, actor } = caller.principal
  return { point, tenant, agent: null, sandbox: null, actor, payload: { requestId: caller.requestId, ...payload } }
}

function toTool({ spec, createdAt, updatedAt, ...row }: StoredTool): Tool {
  return {
    ...row,
    ...spec,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  }
}
