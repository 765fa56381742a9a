import {
  artifact,
  artifactId,
  artifactLink,
  collectArtifactsBody,
  collectedArtifacts,
  linkArtifactBody,
  ROUTES,
} from '@airlock/contract'
import { z } from 'zod'
import { defineTool, type Tool } from '../tool.ts'

const { shape: collecting } = collectArtifactsBody
const { shape: listing } = ROUTES.listArtifacts.query

const shown = z.object(
  artifact.pick({
    id: true,
    name: true,
    size: true,
    sha256: true,
    mediaType: true,
    sandbox: true,
    job: true,
    createdAt: true,
    expiresAt: true,
  }).shape,
)

/** For files that should outlive their sandbox. */
export const ARTIFACT_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'collect_artifacts',
    title: 'Keep files of a sandbox',
    description:
      'Keep files of a sandbox as artifacts, by patterns such as out/** or *.csv, absolute or relative to /workspace. They outlive ' +
      'the sandbox; link_artifact makes a URL of one.',
    routes: ['collectArtifacts'],
    input: z.strictObject({
      sandbox: ROUTES.collectArtifacts.params.shape.id,
      patterns: collecting.patterns,
      ttlMs: collecting.ttlMs,
    }),
    output: z.object({ ...collectedArtifacts.shape, items: z.array(shown) }),
    hints: {},
    run: async ({ sandbox, ...body }, { routes, signal }) => ({
      structured: await routes.call('collectArtifacts', { params: { id: sandbox }, body }, signal),
    }),
  }),
  defineTool({
    name: 'list_artifacts',
    title: 'List artifacts',
    description: ROUTES.listArtifacts.summary,
    routes: ['listArtifacts'],
    input: z.strictObject({
      sandbox: listing.sandbox,
      job: listing.job,
      name: listing.name,
      agent: listing.agent,
      limit: listing.limit,
      cursor: listing.cursor,
    }),
    output: z.object({ items: z.array(shown), nextCursor: z.string().nullable() }),
    hints: { readOnly: true, idempotent: true },
    run: async (query, { routes, signal }) => ({ structured: await routes.call('listArtifacts', { query }, signal) }),
  }),
  defineTool({
    name: 'link_artifact',
    title: 'Make a URL of an artifact',
    description: ROUTES.linkArtifact.summary,
    routes: ['linkArtifact'],
    input: z.strictObject({ id: artifactId, expiresInMs: linkArtifactBody.shape.expiresInMs }),
    output: z.object(artifactLink.shape),
    hints: { idempotent: true },
    run: async ({ id, ...body }, { routes, signal }) => ({
      structured: await routes.call('linkArtifact', { params: { id }, body }, signal),
    }),
  }),
]
