import { type ErrorCode, isAirlockError, type JobArtifacts } from '@airlock/contract'
import { sleep } from '@airlock/std'
import type { Caller } from '../app/caller.ts'
import type { Artifacts } from '../artifacts/artifacts.ts'
import type { StoredJob } from '../store/jobs.ts'
import { toJobArtifacts } from './job-nouns.ts'

/** A process of ours that restarts is waited for this long; what was taken before is not taken again. */
const PATIENCE_MS = 60_000
const AGAIN_MS = 500

const PASSING: ReadonlySet<ErrorCode> = new Set([
  'data_plane_unavailable',
  'evidence_unavailable',
  'store_unavailable',
  'not_ready',
  'timeout',
])

/** What a try left. A job whose artifacts cannot be collected ends as its command did, and says why in `error`. */
export async function collectOfTry(
  artifacts: Pick<Artifacts, 'collectOfJob'>,
  of: { readonly caller: Caller; readonly job: StoredJob; readonly signal: AbortSignal },
): Promise<JobArtifacts | null> {
  const { caller, job, signal } = of
  const { artifacts: patterns = [], artifactTtlMs: ttlMs = 0 } = job.spec?.body ?? {}
  if (patterns.length === 0) return null
  for (const until = performance.now() + PATIENCE_MS; ; await sleep(AGAIN_MS, signal)) {
    const collected = await artifacts
      .collectOfJob(caller, job, { patterns, ttlMs, signal })
      .catch((error: unknown) => ({ items: [], skipped: [], skippedCount: 0, error }))
    signal.throwIfAborted()
    if (!isPassing(collected.error) || performance.now() >= until) return toJobArtifacts(collected)
  }
}

function isPassing(error: unknown): boolean {
  return isAirlockError(error) && PASSING.has(error.code)
}
