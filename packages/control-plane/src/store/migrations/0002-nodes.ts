import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Nodes that share a store, and a chain of evidence for each of them. */
export const nodes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('nodes')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('url', 'text', (column) => column.notNull())
      .addColumn('holder', 'text', (column) => column.notNull())
      .addColumn('beat', 'bigint', (column) => column.notNull())
      .addColumn('seen_at', 'bigint', (column) => column.notNull())
      .addColumn('audit_key', 'text')
      .execute()
    await db.schema.createIndex('sandboxes_of_node').on('sandboxes').columns(['node', 'state']).execute()
    // Whose they were is known by the node that opens the store next.
    await replaceHeads(db, {
      columns: sql`tenant text not null, node text not null, ${REST}, primary key (tenant, node)`,
      rows: sql`select tenant, '', seq, hash, head, stored_at from audit_heads_before`,
    })
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await replaceHeads(db, {
      columns: sql`tenant text not null, ${REST}, primary key (tenant)`,
      rows: sql`select tenant, seq, hash, head, stored_at from audit_heads_before as one where node =
        (select min(node) from audit_heads_before as other where other.tenant = one.tenant)`,
    })
    await db.schema.dropIndex('sandboxes_of_node').execute()
    await db.schema.dropTable('nodes').execute()
  },
}

const REST = sql`seq bigint not null, hash text not null, head text not null, stored_at bigint not null`

/** SQLite cannot change a primary key, so the table is made anew on both. */
async function replaceHeads(
  db: Kysely<unknown>,
  heads: { readonly columns: RawBuilder<unknown>; readonly rows: RawBuilder<unknown> },
): Promise<void> {
  await db.schema.alterTable('audit_heads').renameTo('audit_heads_before').execute()
  await sql`create table audit_heads (${heads.columns})`.execute(db)
  await sql`insert into audit_heads ${heads.rows}`.execute(db)
  await db.schema.dropTable('audit_heads_before').execute()
}
