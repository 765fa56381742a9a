import { AirlockError, type CreateSandboxBody, type PermitMount, WORKTREE_NAME } from '@airlock/contract'
import { INSIDE } from '@airlock/contract/guest'
import type { Context } from '../app/context.ts'
import type { AgentKey } from '../store/agents.ts'
import { listGrants, type StoredGrant } from '../store/grants.ts'
import type { Queries } from '../store/engine/store.ts'

export const WORKTREE_TARGET = `${INSIDE.workspace}/${WORKTREE_NAME}`

type Of = AgentKey & { readonly node: string }

/** The worktree that was asked for, with the commit that it will be of. Fails closed: without a grant there is none. */
export async function grantedWorktree(
  { store, dataPlane }: Pick<Context, 'store' | 'dataPlane'>,
  of: Of,
  { source, at }: NonNullable<CreateSandboxBody['worktree']>,
): Promise<PermitMount> {
  const { id, dev, ino } = await store.query((db) => findWorktreeGrant(db, of, source))
  const base = await dataPlane.findCommit({ path: source, dev, ino, at: at ?? null })
  const place = { path: source, target: WORKTREE_TARGET, mode: 'worktree', kind: 'dir' } as const
  return { grant: id, ...place, commit: base.commit, dev, ino, allowed: [], blocked: [], base }
}

/** Throws what says how to allow it. */
export async function findWorktreeGrant(db: Queries, of: Of, source: string): Promise<StoredGrant> {
  const granted = (await listGrants(db, of)).find(({ mode, path }) => mode === 'worktree' && path === source)
  if (granted) return granted
  throw new AirlockError('worktree_refused', `The agent "${of.agent}" has no grant for worktrees of ${source}.`, {
    hint: `An administrator can run: airlock grant add ${of.agent} ${quoted(source)} --worktree`,
  })
}

function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/u.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
