import { z } from 'zod'
import { BOUNDS, DEFAULTS } from '../../defaults.ts'
import { tier } from '../decision.ts'
import { agentId, artifactId, commandId, id, jobId, plainText, sandboxId, stepId, time, within } from '../scalars.ts'

/** Bytes that are not printable UTF-8 are `\xNN`, and a backslash is doubled. */
const artifactName = plainText.min(1).max(BOUNDS.artifactName)

/** Absolute, or relative to /workspace. `*` and `?` end at a slash, `**` does not. */
export const artifactPattern = plainText
  .min(1)
  .max(BOUNDS.patternLength)
  .refine((pattern) => !pattern.split('/').includes('..'), 'must not contain ".."')
export const artifactPatterns = z.array(artifactPattern).max(BOUNDS.artifactPatterns)

export const artifactTtlMs = within(DEFAULTS.artifactTtlMs)
  .int()
  .default(DEFAULTS.artifactTtlMs.default)
  .describe('Removed after that.')

/** How a caller names an upload: no control characters, and no directory above. */
export const uploadName = z
  .string()
  .min(1)
  .max(BOUNDS.artifactName)
  .regex(/^[^\p{Cc}\p{Cf}\p{Cs}\\]+$/u, 'must be printable, without a backslash')
  .refine((text) => !text.split('/').includes('..'), 'must not contain ".."')

export const artifactProvenance = z.strictObject({
  /** Digest of the root file system of its sandbox; null for the host's. */
  image: z.string().nullable(),
  template: z.string(),
  runtime: z.string().nullable(),
  tier: tier.nullable(),
  /** SHA-256 of the code of its job, or of the arguments as JSON. */
  codeSha256: z.string().nullable(),
})
export type ArtifactProvenance = z.infer<typeof artifactProvenance>

export const artifact = z.strictObject({
  id: artifactId,
  tenant: id,
  agent: agentId,
  name: artifactName,
  size: z.int(),
  sha256: z.string(),
  /** By the extension of its name; never by its content. */
  mediaType: z.string(),
  /** The node that holds its bytes. */
  node: z.string(),
  /** What it was collected from; null for an upload. */
  sandbox: sandboxId.nullable(),
  command: commandId.nullable(),
  step: stepId.nullable(),
  job: jobId.nullable(),
  /** Null for an upload. */
  provenance: artifactProvenance.nullable(),
  createdBy: z.string(),
  createdAt: time,
  expiresAt: time,
})
export type Artifact = z.infer<typeof artifact>

const leftOut = z.strictObject({ name: z.string(), why: z.string() })

/** What one collection took, and what it left out. */
export const collectedArtifacts = z.strictObject({
  items: z.array(artifact),
  skipped: z.array(leftOut).describe('The first of those that matched and were left out.'),
  skippedCount: z.int(),
})
export type CollectedArtifacts = z.infer<typeof collectedArtifacts>

export const collectArtifactsBody = z.strictObject({
  patterns: artifactPatterns.min(1),
  command: commandId.optional().describe('A command of the sandbox that made them.'),
  step: stepId.optional().describe('A step in the sandbox that made them.'),
  ttlMs: artifactTtlMs,
})
export type CollectArtifactsBody = z.infer<typeof collectArtifactsBody>

/** What a job left, as its result shows it. */
export const jobArtifacts = z.strictObject({
  count: z.int(),
  bytes: z.int(),
  items: z
    .array(
      z.strictObject({
        id: artifactId,
        name: artifactName,
        size: z.int(),
        sha256: z.string(),
        mediaType: z.string(),
      }),
    )
    .describe(`The first ${BOUNDS.jobArtifactsShown}; all of them are in the list of artifacts.`),
  skipped: z.array(leftOut),
  skippedCount: z.int(),
  /** Why the collection ended early. */
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
})
export type JobArtifacts = z.infer<typeof jobArtifacts>

export const linkArtifactBody = z.strictObject({
  expiresInMs: within(DEFAULTS.artifactLinkMs).int().default(DEFAULTS.artifactLinkMs.default),
})
export type LinkArtifactBody = z.infer<typeof linkArtifactBody>

export const artifactLink = z.strictObject({
  /** Downloads the artifact without a key until it expires. It is a secret. */
  url: z.string(),
  expiresAt: time,
})
export type ArtifactLink = z.infer<typeof artifactLink>

export const linkToken = z.string().regex(/^[A-Za-z0-9_-]{1,512}\.[A-Za-z0-9_-]{43}$/, 'is not a link to an artifact')
