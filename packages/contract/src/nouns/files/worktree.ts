import { z } from 'zod'
import { BOUNDS } from '../../defaults.ts'
import { plainText } from '../scalars.ts'

/** Where a worktree is, inside. */
export const WORKTREE_NAME = 'repo'

/** An object of git: SHA-1 or SHA-256. */
const objectId = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, 'is not the id of a git object')

/** Absolute and exact: no link, no ".", no ".." and no slash at the end. */
const source = plainText
  .max(BOUNDS.pathBytes)
  .regex(/^(?:\/[^/]+)+$/u, 'must be absolute, without an empty name and without a slash at the end')
  .refine((path) => !path.split('/').some((part) => part === '.' || part === '..'), 'must not contain "." or ".."')
  .refine((path) => !/[\p{Cc}\uFFFD]/u.test(path), 'must not contain control characters')

/** A commit, a branch or a tag. */
const revision = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._/@+-]*$/, 'must be a commit, a branch or a tag')
  .refine((name) => !name.includes('..') && !name.includes('@{'), 'must be one commit')

export const worktreeBody = z.strictObject({
  source: source.describe('The top of a git repository of the host.'),
  at: revision.optional().describe('A commit, branch or tag; what HEAD is when absent.'),
})

/** What a worktree was made of: known before its sandbox is. */
export const worktreeBase = z.strictObject({
  commit: objectId,
  tree: objectId,
  format: z.enum(['sha1', 'sha256']),
  /** Of the commit, in seconds. */
  time: z.int().min(0),
})
export type WorktreeBase = z.infer<typeof worktreeBase>

/** Asks which commit a name is. What is at the path must be what was granted. */
export const findCommitRequest = z.strictObject({
  path: source,
  dev: z.string().regex(/^\d{1,20}$/),
  ino: z.string().regex(/^\d{1,20}$/),
  at: revision.nullable(),
})
export type FindCommitRequest = z.infer<typeof findCommitRequest>

export const FINDING_KINDS = [
  'agent',
  'binary',
  'build',
  'ci',
  'container',
  'git',
  'hook',
  'infra',
  'large',
  'left-out',
  'link-out',
  'long-line',
  'many',
  'name',
  'secret',
  'submodule',
] as const
export const findingKind = z.enum(FINDING_KINDS)
export type FindingKind = z.infer<typeof findingKind>

export const finding = z.strictObject({
  kind: findingKind,
  path: z.string().describe('Below the worktree; empty for a finding about all of it.'),
  line: z.int().nullable(),
  detail: z.string(),
})
export type Finding = z.infer<typeof finding>

export const worktreeChange = z.strictObject({
  path: z.string().describe('Below the worktree; a `file://` URL from its root where the bytes are not UTF-8.'),
  status: z.enum(['added', 'changed', 'deleted', 'renamed', 'mode', 'type']),
  from: z.string().nullable().describe('Where a renamed file was.'),
  oldMode: z.string().nullable(),
  newMode: z.string().nullable(),
  bytes: z.int().nullable(),
  binary: z.boolean(),
})
export type WorktreeChange = z.infer<typeof worktreeChange>

const sealHash = z.string().regex(/^[0-9a-f]{64}$/, 'is not the hash of a sealed copy')

/** What a sandbox changed, as a sealed copy that can leave as exactly these bytes. */
export const worktreeDiff = z.strictObject({
  seal: sealHash.describe('SHA-256 over the base and every change. An export names it.'),
  source: z.string(),
  base: objectId.describe('The commit that it was made from.'),
  changes: z.array(worktreeChange),
  ignored: z.int().describe('Files that the base does not have and a .gitignore names; they do not leave.'),
  leftOut: z
    .array(z.strictObject({ path: z.string(), why: z.enum(['git-name', 'special', 'submodule']) }))
    .describe('What git cannot hold; it does not leave.'),
  commits: z
    .array(z.strictObject({ id: z.string(), subject: z.string() }))
    .describe('Commits that were made inside, newest first.'),
  commitsComplete: z.boolean().describe('False where some could not be read as data.'),
  findings: z.array(finding).describe('What the gate found. An export with findings asks unless a rule allows it.'),
  patchBytes: z.int().nullable().describe('Null where a patch would be too large.'),
})
export type WorktreeDiff = z.infer<typeof worktreeDiff>

const PROTECTED: ReadonlySet<string> = new Set([
  'head',
  'main',
  'master',
  'trunk',
  'staging',
  'production',
  'prod',
  'release',
])
const branchName = z
  .string()
  .max(64)
  .regex(/^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/, 'must be lower-case letters, digits, ".", "-" or "_"')
  .refine((name) => !name.includes('..') && !name.endsWith('.lock'), 'is not the name of a branch')
  .refine((name) => !PROTECTED.has(name), 'is a protected name')

export const exportWorktreeBody = z.strictObject({
  seal: sealHash.optional().describe('Of the diff that was looked at; what the worktree holds now when absent.'),
  branch: branchName.optional().describe('Becomes sandbox/<name>; the name of the sandbox when absent.'),
  message: plainText.min(1).max(4096).optional().describe('Of the one commit that is made.'),
})
export type ExportWorktreeBody = z.infer<typeof exportWorktreeBody>

export const exportedWorktree = z.discriminatedUnion('exported', [
  z.strictObject({ exported: z.literal(false), seal: sealHash }),
  z.strictObject({
    exported: z.literal(true),
    seal: sealHash,
    branch: z.string(),
    commit: objectId,
    base: objectId,
  }),
])
export type ExportedWorktree = z.infer<typeof exportedWorktree>

export const sealQuery = z.strictObject({ seal: sealHash })

/** What the data plane writes into the repository that a worktree is of. */
export const nodeExportRequest = z.strictObject({ seal: sealHash, branch: branchName, message: plainText })
export type NodeExportRequest = z.infer<typeof nodeExportRequest>
export const nodeExport = z.strictObject({ commit: objectId, ref: z.string() })
export type NodeExport = z.infer<typeof nodeExport>
