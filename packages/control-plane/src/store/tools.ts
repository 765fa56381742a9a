import { toolSpec } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'

const storedTool = z.object({
  tenant: z.string(),
  name: z.string(),
  spec: jsonColumn(toolSpec),
  version: z.int(),
  createdAt: z.int(),
  updatedAt: z.int(),
  updatedBy: z.string(),
})
export type StoredTool = z.infer<typeof storedTool>

interface ToolRef {
  readonly tenant: string
  readonly name: string
}

/** Takes the place of the description before. */
export async function putTool(db: Queries, row: StoredTool): Promise<void> {
  const { tenant, name, createdAt, spec, ...rest } = row
  const changes = { ...rest, spec: JSON.stringify(spec) }
  await db
    .insertInto('tools')
    .values({ tenant, name, createdAt, ...changes })
    .onConflict((conflict) => conflict.columns(['tenant', 'name']).doUpdateSet(changes))
    .execute()
}

export async function listTools(db: Queries, tenant: string): Promise<readonly StoredTool[]> {
  const rows = await db.selectFrom('tools').selectAll().where('tenant', '=', tenant).orderBy('name').execute()
  return z.array(storedTool).parse(rows)
}

export async function findTool(db: Queries, { tenant, name }: ToolRef): Promise<StoredTool | undefined> {
  const row = await db
    .selectFrom('tools')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('name', '=', name)
    .executeTakeFirst()
  return row && storedTool.parse(row)
}

export async function takeTool(db: Queries, { tenant, name }: ToolRef): Promise<StoredTool | undefined> {
  const row = await db
    .deleteFrom('tools')
    .where('tenant', '=', tenant)
    .where('name', '=', name)
    .returningAll()
    .executeTakeFirst()
  return row && storedTool.parse(row)
}

/** Answers how many calls the sandbox has made, this one included. It never falls. */
export async function countToolCall(db: Queries, sandbox: string): Promise<number> {
  const { calls } = await db
    .insertInto('toolCounts')
    .values({ sandbox, calls: 1 })
    .onConflict((conflict) =>
      conflict.column('sandbox').doUpdateSet((eb) => ({ calls: eb('toolCounts.calls', '+', 1) })),
    )
    .returning('calls')
    .executeTakeFirstOrThrow()
  return calls
}
