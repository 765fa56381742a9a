import { templateSpec } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import { LIVING_STATES } from './sandboxes.ts'
import type { Queries } from './engine/store.ts'

const storedTemplate = z.object({
  tenant: z.string(),
  name: z.string(),
  source: z.enum(['packages', 'imported']),
  spec: jsonColumn(templateSpec),
  /** Of an imported one; what packages stand on is found by their names. */
  image: z.string().nullable(),
  createdAt: z.int(),
})
export type StoredTemplate = z.infer<typeof storedTemplate>

export interface TemplateKey {
  readonly tenant: string
  readonly name: string
}

export async function findTemplate(db: Queries, key: TemplateKey): Promise<StoredTemplate | undefined> {
  const query = db.selectFrom('templates').selectAll().where('tenant', '=', key.tenant).where('name', '=', key.name)
  const row = await query.executeTakeFirst()
  return row && storedTemplate.parse(row)
}

export async function listTemplates(db: Queries, tenant: string): Promise<readonly StoredTemplate[]> {
  const query = db.selectFrom('templates').selectAll().where('tenant', '=', tenant).orderBy('name')
  return z.array(storedTemplate).parse(await query.execute())
}

/** Those of all tenants, for who looks which images are still referred to. */
export async function listAllTemplates(db: Queries): Promise<readonly StoredTemplate[]> {
  return z.array(storedTemplate).parse(await db.selectFrom('templates').selectAll().execute())
}

/** Makes it, or changes all of it but its age. */
export async function writeTemplate(db: Queries, template: StoredTemplate): Promise<void> {
  const { source, image } = template
  const spec = JSON.stringify(template.spec)
  await db
    .insertInto('templates')
    .values({ ...template, spec })
    .onConflict((conflict) => conflict.columns(['tenant', 'name']).doUpdateSet({ source, spec, image }))
    .execute()
}

export async function deleteTemplate(db: Queries, key: TemplateKey): Promise<void> {
  await db.deleteFrom('templates').where('tenant', '=', key.tenant).where('name', '=', key.name).execute()
}

/** How many living sandboxes, on any node, were made from it. */
export async function countStandingOn(db: Queries, key: TemplateKey): Promise<number> {
  const { count } = await db
    .selectFrom('sandboxes')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('tenant', '=', key.tenant)
    .where('template', '=', key.name)
    .where('state', 'in', LIVING_STATES)
    .executeTakeFirstOrThrow()
  return Number(count)
}
