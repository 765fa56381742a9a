import { commandState, decision, endCause, type EndCause, keptOutput } from '@airlock/contract'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './engine/json-column.ts'
import { rawQuery } from './engine/raw-query.ts'
import type { Queries } from './engine/store.ts'

const storedCommand = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  sandbox: z.string(),
  argv: jsonColumn(z.array(z.string())),
  cwd: z.string(),
  state: commandState,
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  timedOut: flagColumn,
  cause: endCause.nullable(),
  truncated: flagColumn,
  outputBytes: z.int(),
  maxOutputBytes: z.int(),
  /** What is kept of it beyond that. */
  fullOutput: jsonColumn(keptOutput).nullable(),
  startedAt: z.int(),
  endedAt: z.int().nullable(),
  /** Who asked for it. */
  actor: z.string(),
  recorded: flagColumn,
  /** What Guardian said of it; null of commands that are older than Guardian. */
  decision: jsonColumn(decision).nullable(),
})
export type StoredCommand = z.infer<typeof storedCommand>

/** How a command ended. */
export type CommandEnd = Pick<
  StoredCommand,
  | 'state'
  | 'exitCode'
  | 'signal'
  | 'timedOut'
  | 'cause'
  | 'truncated'
  | 'outputBytes'
  | 'fullOutput'
  | 'startedAt'
  | 'endedAt'
>

const INSERT = `insert into commands
  (id, tenant, agent, sandbox, argv, cwd, actor, recorded, max_output_bytes, decision,
   state, exit_code, signal, timed_out, cause, truncated, output_bytes, full_output, started_at, ended_at)
  values ($1, $2, $3, (select id from sandboxes where id = $4 and state = 'active'), $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
  on conflict (id) do nothing`

const END = `update commands
  set state = $2, exit_code = $3, signal = $4, timed_out = $5, cause = $6, truncated = $7, output_bytes = $8,
      full_output = $9, started_at = $10, ended_at = $11
  where id = $1 and state = 'running'`

/** Throws when the sandbox is not active, see `Store.isMissing`: its end takes the commands along, so none may come after it. */
export async function insertCommand(db: Queries, command: StoredCommand): Promise<void> {
  const { id, tenant, agent, sandbox, argv, cwd, actor, recorded, maxOutputBytes, decision: said, ...end } = command
  await rawQuery(db, INSERT, [
    id,
    tenant,
    agent,
    sandbox,
    JSON.stringify(argv),
    cwd,
    actor,
    recorded ? 1 : 0,
    maxOutputBytes,
    said && JSON.stringify(said),
    ...endColumns(end),
  ])
}

export async function findCommand(
  db: Queries,
  of: { readonly sandbox: string; readonly command: string },
): Promise<StoredCommand | undefined> {
  const row = await db
    .selectFrom('commands')
    .selectAll()
    .where('id', '=', of.command)
    .where('sandbox', '=', of.sandbox)
    .executeTakeFirst()
  return row && storedCommand.parse(row)
}

/** Newest first: ids sort by age. */
export async function listCommands(
  db: Queries,
  filter: { readonly sandbox: string; readonly before: string | undefined; readonly limit: number },
): Promise<readonly StoredCommand[]> {
  let query = db.selectFrom('commands').selectAll().where('sandbox', '=', filter.sandbox)
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  return z.array(storedCommand).parse(await query.orderBy('id', 'desc').limit(filter.limit).execute())
}

export async function listRunning(db: Queries, node: string): Promise<readonly StoredCommand[]> {
  return z.array(storedCommand).parse(await onNode(db, node).where('commands.state', '=', 'running').execute())
}

/** Ended commands of a node whose last record may be missing in the evidence. */
export async function listOwedCommands(
  db: Queries,
  of: { readonly node: string; readonly after: string; readonly limit: number },
): Promise<readonly StoredCommand[]> {
  const query = onNode(db, of.node).where('commands.state', 'in', ['exited', 'lost']).where('commands.recorded', '=', 0)
  return z
    .array(storedCommand)
    .parse(await query.where('commands.id', '>', of.after).orderBy('commands.id').limit(of.limit).execute())
}

function onNode(db: Queries, node: string) {
  return db
    .selectFrom('commands')
    .innerJoin('sandboxes', 'sandboxes.id', 'commands.sandbox')
    .selectAll('commands')
    .where('sandboxes.node', '=', node)
}

/** The first end counts: false when the command has one already. */
export async function endCommand(db: Queries, id: string, end: CommandEnd): Promise<boolean> {
  return (await rawQuery(db, END, [id, ...endColumns(end)])).changes > 0
}

/** In the order in which `INSERT` and `END` name them. */
function endColumns(end: CommandEnd): readonly (string | number | null)[] {
  const { state, exitCode, signal, timedOut, cause, truncated, outputBytes, fullOutput, startedAt, endedAt } = end
  const kept = fullOutput && JSON.stringify(fullOutput)
  return [state, exitCode, signal, timedOut ? 1 : 0, cause, truncated ? 1 : 0, outputBytes, kept, startedAt, endedAt]
}

/** What still ran in a sandbox that is gone has no result. */
export async function loseCommandsOf(
  db: Queries,
  sandbox: string,
  end: { readonly at: number; readonly cause: EndCause },
): Promise<readonly StoredCommand[]> {
  const rows = await db
    .updateTable('commands')
    .set({ state: 'lost', endedAt: end.at, cause: end.cause })
    .where('sandbox', '=', sandbox)
    .where('state', '=', 'running')
    .returningAll()
    .execute()
  return z.array(storedCommand).parse(rows)
}

/** For a command that never began. */
export async function deleteCommand(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('commands').where('id', '=', id).execute()
}

export async function setCommandsRecorded(db: Queries, ids: readonly string[]): Promise<void> {
  await db.updateTable('commands').set({ recorded: 1 }).where('id', 'in', ids).execute()
}
