import { job, jobId, jobLog, ROUTES, submitJobBody } from '@airlock/contract'
import { z } from 'zod'
import { defineTool, type Tool } from '../tool.ts'

const { shape: body } = submitJobBody
const ofJob = z.strictObject({ id: jobId })
const shown = z.object(
  job.pick({
    id: true,
    state: true,
    argv: true,
    tries: true,
    exitCode: true,
    signal: true,
    cause: true,
    error: true,
    outputBytes: true,
    truncated: true,
    artifacts: true,
    createdAt: true,
    startedAt: true,
    endedAt: true,
  }).shape,
)

/** For work that is longer than a client waits. */
export const JOB_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'run_job',
    title: 'Queue a job',
    description:
      'Queue a command or code that runs in a sandbox of its own and outlives this call, and answer its id at once. Look at it with ' +
      'get_job, read what it says with read_job_log. Its files end with its sandbox, but for those that artifacts names by patterns.',
    routes: ['submitJob'],
    input: z.strictObject({
      argv: body.argv,
      shell: body.shell,
      code: body.code,
      language: body.language,
      template: body.template,
      agent: body.agent,
      env: body.env,
      limits: body.limits,
      files: body.files,
      inputs: body.inputs,
      artifacts: body.artifacts,
      timeoutMs: body.timeoutMs,
      queueMs: body.queueMs,
      retries: body.retries,
      labels: body.labels,
      idempotencyKey: body.idempotencyKey,
    }),
    output: shown,
    hints: {},
    run: async (asked, { routes }) => ({ structured: await routes.call('submitJob', { body: asked }) }),
  }),
  defineTool({
    name: 'get_job',
    title: 'Look at a job',
    description: ROUTES.getJob.summary,
    routes: ['getJob'],
    input: ofJob,
    output: shown,
    hints: { readOnly: true, idempotent: true },
    run: async (params, { routes, signal }) => ({ structured: await routes.call('getJob', { params }, signal) }),
  }),
  defineTool({
    name: 'read_job_log',
    title: 'Read the log of a job',
    description: 'What a job has said so far, from an offset on; the answer has the offset to go on from.',
    routes: ['jobLogs'],
    input: z.strictObject({ id: jobId, from: z.int().min(0).default(0) }),
    output: z.object({ ...jobLog.shape, job: shown }),
    hints: { readOnly: true, idempotent: true },
    run: async ({ id, from }, { routes, signal }) => ({
      structured: await routes.call('jobLogs', { params: { id }, query: { from } }, signal),
    }),
  }),
  defineTool({
    name: 'cancel_job',
    title: 'Cancel a job',
    description: ROUTES.cancelJob.summary,
    routes: ['cancelJob'],
    input: ofJob,
    output: shown,
    hints: { destructive: true, idempotent: true },
    run: async (params, { routes }) => ({ structured: await routes.call('cancelJob', { params }) }),
  }),
]
