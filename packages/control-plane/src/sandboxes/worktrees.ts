import {
  AirlockError,
  type ExportedWorktree,
  type ExportWorktreeBody,
  type Mount,
  type Operation,
  type WorktreeDiff,
} from '@airlock/contract'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { type Deed, deedOf, doRecorded, type Governed } from '../evidence/evidence.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import type { Activity } from './activity.ts'
import { inSandbox, readableSandbox } from './owned-sandbox.ts'

/** A record names the findings; of more than these, how many there are. */
const RECORDED = 50

type Leaving = Extract<Operation, { kind: 'worktree' }>

/**
 * What sandboxes changed in their worktrees. Nothing leaves without a decision on a sealed copy, named by the hash of its content;
 * what is written or sent is that copy.
 */
export class WorktreeDesk {
  readonly #context: Context
  readonly #activity: Activity

  constructor(context: Context, activity: Activity) {
    this.#context = context
    this.#activity = activity
  }

  async diff(caller: Caller, id: string): Promise<WorktreeDiff> {
    const { store, guardian, dataPlane } = this.#context
    const sandbox = await readableSandbox(this.#context, caller, id)
    const deed = await guardian.pass(caller, deedOf(caller, sandbox, { point: 'worktree.diff', payload: {} }))
    worktreeOf(sandbox)
    return doRecorded(this.#context, deed, async () => {
      const found = await inSandbox(store, id, () => dataPlane.sealWorktree(id))
      return { value: found, payload: recordOf(found) }
    })
  }

  async patch(caller: Caller, id: string, seal: string): Promise<{ size: number; bytes: AsyncIterable<Buffer> }> {
    const { store, dataPlane } = this.#context
    const { deed } = await this.#decide(caller, id, { seal, format: 'patch', branch: null })
    return doRecorded(this.#context, deed, async () => ({
      value: await inSandbox(store, id, () => dataPlane.worktreePatch(id, seal)),
    }))
  }

  async export(caller: Caller, id: string, body: ExportWorktreeBody): Promise<ExportedWorktree> {
    const { store, dataPlane } = this.#context
    const { sandbox, deed, found } = await this.#decide(caller, id, {
      seal: body.seal,
      format: 'branch',
      branch: body.branch ?? null,
    })
    const { seal, base } = found
    if (found.changes.length === 0) return { exported: false, seal }
    const branch = branchOf(sandbox, body)
    const message = body.message ?? `Work of sandbox ${sandbox.name ?? sandbox.id}`
    const trailers = `Airlock-Sandbox: ${id}\nAirlock-Seal: ${seal}`
    const done = await doRecorded(this.#context, deed, async () => {
      const asked = { seal, branch, message: `${message.trimEnd()}\n\n${trailers}` }
      const made = await inSandbox(store, id, () => dataPlane.exportWorktree(id, asked))
      return { value: made, payload: { commit: made.commit, branch: `sandbox/${branch}` } }
    })
    await this.#activity.touch(sandbox)
    return { exported: true, seal, branch: `sandbox/${branch}`, commit: done.commit, base }
  }

  /** What would leave, and that it may. */
  async #decide(
    caller: Caller,
    id: string,
    asked: { readonly seal: string | undefined; readonly format: 'branch' | 'patch'; readonly branch: string | null },
  ): Promise<{ readonly sandbox: StoredSandbox; readonly deed: Governed; readonly found: WorktreeDiff }> {
    const { store, guardian, dataPlane } = this.#context
    const { format } = asked
    const sandbox = await readableSandbox(this.#context, caller, id)
    const payload = { format, branch: asked.branch, seal: asked.seal ?? null }
    const deed = deedOf(caller, sandbox, { point: 'worktree.export', payload })
    const source = sandbox.mounts.find(isWorktree)?.path ?? ''
    // Whoever may not at all learns nothing of the work, and causes none.
    const nothing: Leaving = { kind: 'worktree', source, format, branch: null, seal: '', changes: 0, findings: [] }
    await guardian.foresee(caller, deed, [{ point: 'worktree.export', operation: nothing }])
    worktreeOf(sandbox)
    const found = await inSandbox(store, id, () =>
      asked.seal === undefined ? dataPlane.sealWorktree(id) : dataPlane.sealedWorktree(id, asked.seal),
    )
    const branch = format === 'branch' && found.changes.length > 0 ? branchOf(sandbox, asked) : null
    const leaving: Leaving = {
      kind: 'worktree',
      source: found.source,
      format,
      branch,
      seal: found.seal,
      changes: found.changes.length,
      findings: found.findings.map(({ kind, path, line, detail }) => ({
        kind,
        path,
        detail: line === null ? detail : `line ${line}: ${detail}`,
      })),
    }
    const known: Deed = { ...deed, payload: { ...deed.payload, ...recordOf(found), format, branch } }
    return { sandbox, deed: await guardian.pass(caller, known, leaving), found }
  }
}

function isWorktree({ mode }: Mount): boolean {
  return mode === 'worktree'
}

function worktreeOf({ mounts }: StoredSandbox): Mount {
  const found = mounts.find(isWorktree)
  if (!found) throw new AirlockError('worktree_not_found')
  return found
}

/** The name that was asked for, else that of the sandbox; never an id, which means nothing to whoever finds the branch. */
function branchOf({ name }: StoredSandbox, { branch }: { readonly branch?: string | null | undefined }): string {
  const named = branch ?? name
  if (named !== null) return named
  throw new AirlockError('invalid_request', 'The sandbox has no name, so the branch needs one.', {
    hint: 'Name it: airlock worktree export SANDBOX --branch NAME',
  })
}

function recordOf(found: WorktreeDiff): Deed['payload'] {
  const { seal, source, base, changes, findings, ignored, commits } = found
  return {
    seal,
    source,
    base,
    changes: changes.length,
    ignored,
    commits: commits.length,
    findings: findings.slice(0, RECORDED).map(({ kind, path, line, detail }) => ({ kind, path, line, detail })),
    findingCount: findings.length,
  }
}
