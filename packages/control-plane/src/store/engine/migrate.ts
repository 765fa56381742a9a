import { AirlockError } from '@airlock/contract'
import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator, NO_MIGRATIONS } from 'kysely/migration'
import { walk } from '../migrations/0001-walk.ts'
import { nodes } from '../migrations/0002-nodes.ts'
import { sessions } from '../migrations/0003-sessions.ts'
import { who } from '../migrations/0004-who.ts'
import { grants } from '../migrations/0005-grants.ts'
import { budgets } from '../migrations/0006-budgets.ts'
import { policies } from '../migrations/0007-policies.ts'
import { approvals } from '../migrations/0008-approvals.ts'
import { kills } from '../migrations/0009-kills.ts'
import { sandboxTokens } from '../migrations/0010-sandbox-tokens.ts'
import { metrics } from '../migrations/0011-metrics.ts'
import { causes } from '../migrations/0012-causes.ts'
import { signsOfLife } from '../migrations/0013-signs-of-life.ts'
import { diskBudgets } from '../migrations/0014-disk-budgets.ts'
import { fullOutputs } from '../migrations/0015-full-outputs.ts'
import { sandboxDoors } from '../migrations/0016-sandbox-doors.ts'
import { modelCalls } from '../migrations/0017-model-calls.ts'
import { sandboxModels } from '../migrations/0018-sandbox-models.ts'
import { artifacts } from '../migrations/0022-artifacts.ts'
import { jobs } from '../migrations/0019-jobs.ts'
import { keyPersons } from '../migrations/0020-key-persons.ts'
import { modelCallEnds } from '../migrations/0021-model-call-ends.ts'
import { tools } from '../migrations/0023-tools.ts'
import { runs } from '../migrations/0024-runs.ts'

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
  '0010-sandbox-tokens': sandboxTokens,
  '0011-metrics': metrics,
  '0012-causes': causes,
  '0013-signs-of-life': signsOfLife,
  '0014-disk-budgets': diskBudgets,
  '0015-full-outputs': fullOutputs,
  '0016-sandbox-doors': sandboxDoors,
  '0017-model-calls': modelCalls,
  '0018-sandbox-models': sandboxModels,
  '0019-jobs': jobs,
  '0020-key-persons': keyPersons,
  '0021-model-call-ends': modelCallEnds,
  '0022-artifacts': artifacts,
  '0023-tools': tools,
  '0024-runs': runs,
}

/** Numbers once had a gap: how these steps are called in stores from before, and how now. */
const RENAMED: Readonly<Record<string, string>> = {
  '0011-sandbox-tokens': '0010-sandbox-tokens',
  '0012-metrics': '0011-metrics',
  '0013-causes': '0012-causes',
}

/** Brings the schema to the latest step, or takes all of them back. Fails closed: half a schema is never served. */
export async function migrate<T>(db: Kysely<T>, to: 'latest' | 'nothing'): Promise<void> {
  try {
    await run(db.withoutPlugins(), to)
  } catch (error) {
    throw new AirlockError('internal', 'The database could not be migrated.', { cause: error })
  }
}

async function run<T>(db: Kysely<T>, to: 'latest' | 'nothing'): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } })
  if ((await migrator.getMigrations()).some(({ executedAt }) => executedAt !== undefined)) await renameSteps(db)
  const { error } = to === 'latest' ? await migrator.migrateToLatest() : await migrator.migrateTo(NO_MIGRATIONS)
  if (error !== undefined) throw error
}

async function renameSteps<T>(db: Kysely<T>): Promise<void> {
  for (const [before, now] of Object.entries(RENAMED))
    await sql`update kysely_migration set name = ${now} where name = ${before}`.execute(db)
}
