import type { App } from '../../app/app.ts'
import { json, type Handlers } from '../call.ts'

export function worktreeHandlers(worktrees: App['worktrees']) {
  return {
    diffWorktree: async ({ caller, params }) => json(await worktrees.diff(caller, params.id)),
    readWorktreePatch: async ({ caller, params, query }) => {
      const { size, bytes } = await worktrees.patch(caller, params.id, query.seal)
      return { kind: 'bytes', size, bytes, type: 'text/x-diff' }
    },
    exportWorktree: async ({ caller, params, body }) => json(await worktrees.export(caller, params.id, body)),
  } satisfies Partial<Handlers>
}
