import { AirlockError } from '@airlock/contract'
import type { Kysely } from 'kysely'
import { type Migration, Migrator, NO_MIGRATIONS } from 'kysely/migration'
import { walk } from './migrations/0001-walk.ts'
import { nodes } from './migrations/0002-nodes.ts'
import { sessions } from './migrations/0003-sessions.ts'
import { who } from './migrations/0004-who.ts'
import { grants } from './migrations/0005-grants.ts'
import { budgets } from './migrations/0006-budgets.ts'
import { policies } from './migrations/0007-policies.ts'
import { approvals } from './migrations/0008-approvals.ts'
import { kills } from './migrations/0009-kills.ts'
import { sandboxTokens } from './migrations/0011-sandbox-tokens.ts'
import { metrics } from './migrations/0012-metrics.ts'
import { causes } from './migrations/0013-causes.ts'

/** Every step of the schema, in order of name. They are imported, not read from disk: no file is opened after the drop. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-walk': walk,
  '0002-nodes': nodes,
  '0003-sessions': sessions,
  '0004-who': who,
  '0005-grants': grants,
  '0006-budgets': budgets,
  '0007-policies': policies,
  '0008-approvals': approvals,
  '0009-kills': kills,
  '0011-sandbox-tokens': sandboxTokens,
  '0012-metrics': metrics,
  '0013-causes': causes,
}

/** Brings the schema to the latest step, or takes all of them back. Fails closed: half a schema is never served. */
export async function migrate<T>(db: Kysely<T>, to: 'latest' | 'nothing'): Promise<void> {
  const migrator = new Migrator({
    db: db.withoutPlugins(),
    provider: { getMigrations: async () => ({ ...MIGRATIONS }) },
  })
  const { error } = to === 'latest' ? await migrator.migrateToLatest() : await migrator.migrateTo(NO_MIGRATIONS)
  if (error !== undefined) throw new AirlockError('internal', 'The database could not be migrated.', { cause: error })
}
