import { z } from 'zod'
import type { ErrorCode } from '../errors.ts'
import {
  artifact,
  artifactLink,
  artifactTtlMs,
  collectArtifactsBody,
  collectedArtifacts,
  linkArtifactBody,
  linkToken,
  uploadName,
} from '../nouns/files/artifact.ts'
import { agentId, artifactId, commandId, jobId, plainText, sandboxId, stepId } from '../nouns/scalars.ts'
import { BOUNDS, DEFAULTS } from '../defaults.ts'
import { cursor, LIVE, page, pageLimit, READERS, type Route, USERS } from './route.ts'

const ofArtifact = z.strictObject({ id: artifactId })

const STORES: readonly ErrorCode[] = ['artifact_quota', 'artifact_too_large', 'host_disk_full', 'disk_failed']
const READS: readonly ErrorCode[] = [
  'artifact_not_found',
  'range_invalid',
  'wrong_node',
  'killed',
  'data_plane_unavailable',
  'evidence_unavailable',
]

/** The part of the table of routes that is about artifacts. */
export const ARTIFACT_ROUTES = {
  collectArtifacts: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/artifacts',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Collect files of a sandbox as artifacts, by patterns. Links, devices, FIFOs and sockets are left out.',
    roles: USERS,
    params: z.strictObject({ id: sandboxId }),
    body: collectArtifactsBody,
    answers: 'json',
    response: collectedArtifacts,
    errors: [...LIVE, 'command_not_found', 'step_not_found', 'invalid_path', 'file_not_found', ...STORES],
    effect: 'artifact.collect',
  },
  uploadArtifact: {
    method: 'POST',
    path: '/v1/artifacts',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Upload an artifact: the body is its content.',
    roles: USERS,
    query: z.strictObject({
      name: uploadName,
      agent: agentId.optional(),
      size: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .describe('Of the content, for a client that sends no Content-Length. More is refused.'),
      ttlMs: z.coerce.number().pipe(artifactTtlMs.unwrap()).default(DEFAULTS.artifactTtlMs.default),
    }),
    sends: 'bytes',
    answers: 'json',
    response: artifact,
    errors: [
      'agent_required',
      'agent_not_found',
      'agent_suspended',
      'killed',
      ...STORES,
      'body_too_large',
      'data_plane_unavailable',
      'evidence_unavailable',
    ],
    effect: 'artifact.upload',
  },
  listArtifacts: {
    method: 'GET',
    path: '/v1/artifacts',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List artifacts, newest first.',
    roles: READERS,
    query: z.strictObject({
      sandbox: sandboxId.optional(),
      command: commandId.optional(),
      step: stepId.optional(),
      job: jobId.optional(),
      agent: agentId.optional(),
      name: plainText.max(BOUNDS.artifactName).optional(),
      limit: pageLimit,
      cursor,
    }),
    answers: 'json',
    response: page(artifact),
    errors: [],
  },
  getArtifact: {
    method: 'GET',
    path: '/v1/artifacts/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Look at one artifact.',
    roles: READERS,
    params: ofArtifact,
    answers: 'json',
    response: artifact,
    errors: ['artifact_not_found'],
  },
  downloadArtifact: {
    method: 'GET',
    path: '/v1/artifacts/{id}/content',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Download an artifact, or one range of it (Range, If-Range). Its ETag is its SHA-256.',
    roles: USERS,
    params: ofArtifact,
    answers: 'bytes',
    errors: READS,
    effect: 'artifact.download',
  },
  linkArtifact: {
    method: 'POST',
    path: '/v1/artifacts/{id}/link',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Make a signed URL that downloads an artifact without a key until it expires.',
    roles: USERS,
    params: ofArtifact,
    body: linkArtifactBody,
    answers: 'json',
    response: artifactLink,
    errors: ['artifact_not_found', 'wrong_node', 'killed', 'evidence_unavailable'],
    effect: 'artifact.link',
  },
  downloadLinkedArtifact: {
    method: 'GET',
    path: '/v1/artifact-links/{token}',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Download an artifact by a signed URL.',
    roles: 'public',
    params: z.strictObject({ token: linkToken }),
    answers: 'bytes',
    errors: [...READS, 'artifact_link_invalid', 'too_many_streams'],
    effect: 'artifact.download',
  },
  removeArtifact: {
    method: 'DELETE',
    path: '/v1/artifacts/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Remove an artifact; its links stop working at once.',
    roles: USERS,
    params: ofArtifact,
    answers: 'none',
    errors: ['artifact_not_found', 'wrong_node'],
    effect: 'artifact.remove',
  },
} as const satisfies Record<string, Route>
