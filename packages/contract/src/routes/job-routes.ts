import { z } from 'zod'
import { job, jobEvent, jobLog, jobState, submitJobBody } from '../nouns/job.ts'
import { agentId, jobId } from '../nouns/scalars.ts'
import { cursor, page, pageLimit, READERS, type Route, USERS } from './route.ts'

const ofJob = z.strictObject({ id: jobId })

/** The part of the table of routes that is about jobs. */
export const JOB_ROUTES = {
  submitJob: {
    method: 'POST',
    path: '/v1/jobs',
    needs: 'granting',
    repeats: 'unsafe',
    summary:
      'Queue a job: a command in a fresh sandbox that outlives this call. With an idempotencyKey, asking again is safe.',
    roles: USERS,
    body: submitJobBody,
    answers: 'json',
    response: job,
    status: 202,
    errors: [
      'agent_required',
      'agent_not_found',
      'agent_not_approved',
      'agent_suspended',
      'killed',
      'template_not_found',
      'template_invalid',
      'budget_exhausted',
      'artifact_not_found',
      'job_mismatch',
      'queue_full',
      'evidence_unavailable',
    ],
    effect: 'job.submit',
  },
  listJobs: {
    method: 'GET',
    path: '/v1/jobs',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List jobs, newest first.',
    roles: READERS,
    query: z.strictObject({ state: jobState.optional(), agent: agentId.optional(), limit: pageLimit, cursor }),
    answers: 'json',
    response: page(job),
    errors: [],
  },
  getJob: {
    method: 'GET',
    path: '/v1/jobs/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Look at one job, and at its result once it has ended.',
    roles: READERS,
    params: ofJob,
    answers: 'json',
    response: job,
    errors: ['job_not_found'],
  },
  cancelJob: {
    method: 'POST',
    path: '/v1/jobs/{id}/cancel',
    needs: 'serving',
    repeats: 'safe',
    summary:
      'Cancel a job: one that waits ends at once, the sandbox of one that runs is ended. Asking again answers the same.',
    roles: USERS,
    params: ofJob,
    answers: 'json',
    response: job,
    errors: ['job_not_found'],
    effect: 'job.cancel',
  },
  jobLogs: {
    method: 'GET',
    path: '/v1/jobs/{id}/logs',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The output of a job from an offset on: what there is as JSON, or SSE until it ends.',
    roles: USERS,
    params: ofJob,
    query: z.strictObject({ from: z.coerce.number().int().min(0).default(0) }),
    answers: 'json-or-events',
    response: jobLog,
    events: jobEvent,
    errors: ['job_not_found'],
  },
} as const satisfies Record<string, Route>
