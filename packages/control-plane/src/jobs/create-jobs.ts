import type { Artifacts } from '../artifacts/artifacts.ts'
import type { Context } from '../app/context.ts'
import type { Creation } from '../sandboxes/create.ts'
import type { Receipts } from '../evidence/receipts.ts'
import { Catalog } from '../runs/catalog.ts'
import { Runs } from '../runs/runs.ts'
import { JobEnds } from './job-ends.ts'
import { JobFeed } from './job-feed.ts'
import { JobRunner } from './job-runner.ts'
import type { TryParts } from './job-try.ts'
import { Jobs } from './jobs.ts'

interface Parts extends Omit<TryParts, 'creation' | 'ends' | 'feed'> {
  readonly creation: Creation
  readonly receipts: Receipts
  readonly artifacts: Artifacts
}

/** What callers ask for, and what runs it. Runs of agent programs are jobs. */
export function createJobs(context: Context, { receipts, creation, ...parts }: Parts) {
  const feed = new JobFeed()
  const ends = new JobEnds({ ...context, feed, receipts })
  const jobRunner = new JobRunner(context, { ...parts, creation, ends, feed })
  const jobs = new Jobs(context, { creation, artifacts: parts.artifacts, ends, feed, runner: jobRunner })
  const catalog = new Catalog(context)
  return { jobRunner, jobs, catalog, runs: new Runs(context, { jobs, catalog, feed }) }
}
