import { AirlockError, type Mount, type PermitMount } from '@airlock/contract'
import type { AgentKey } from '../store/agents.ts'
import { listGrants } from '../store/grants.ts'
import type { Queries } from '../store/engine/store.ts'

/**
 * What a sandbox of an agent sees of a node: everything it was granted there, and nothing else. Preconditions: in the
 * transaction that inserts the row, so that a grant that is taken back finds the sandbox that holds it.
 */
export async function grantedMounts(
  db: Queries,
  of: AgentKey & { readonly node: string },
): Promise<readonly PermitMount[]> {
  const grants = await listGrants(db, of)
  const mounted = grants.filter(({ mode }) => mode !== 'worktree')
  return mounted.map(({ id, path, mode, kind, target, dev, ino, allowed, blocked }) => ({
    grant: id,
    path,
    mode,
    kind,
    target,
    dev,
    ino,
    allowed,
    blocked,
  }))
}

/** The part of it that callers see. */
export function toMount({ grant, path, target, mode, kind, commit }: PermitMount): Mount {
  return { grant, path, target, mode, kind, ...(commit === undefined ? {} : { commit }) }
}

/** Fails closed: what was granted since Guardian was asked was not asked about. */
export function assertAsDecided(granted: readonly PermitMount[], known: readonly PermitMount[]): void {
  const ofMount = ({ grant, mode }: PermitMount) => `${grant} ${mode}`
  const asked = new Set(known.map(ofMount))
  if (granted.every((mount) => asked.has(ofMount(mount)))) return
  throw new AirlockError('grant_refused', 'Something was granted to the agent meanwhile.', { hint: 'Ask again.' })
}
