import { worktreeDiff } from '@airlock/contract'
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { nameBytes } from './names.ts'

const scannedChange = z.strictObject({
  path: z.string(),
  oldMode: z.string().nullable(),
  newMode: z.string().nullable(),
  oldOid: z.string().nullable(),
  newOid: z.string().nullable(),
  sha256: z.string().nullable(),
  size: z.int().nullable(),
  /** The base has no such content anywhere. */
  isNew: z.boolean(),
})
export type ScannedChange = z.infer<typeof scannedChange>

/** What the program that reads the disk says. */
export const scanned = z.strictObject({
  tree: z.string(),
  changes: z.array(scannedChange),
  ignored: z.int(),
  patch: z.boolean(),
  commits: z.array(z.strictObject({ id: z.string(), subject: z.string() })),
  commitsComplete: z.boolean(),
  leftOut: z.array(z.tuple([z.string(), z.enum(['git-name', 'special', 'submodule'])])),
  leftOutCount: z.int(),
  /** New trees with the SHA-256 of each. */
  objects: z.array(z.tuple([z.string(), z.string()])),
})
export type Scanned = z.infer<typeof scanned>

/** A sealed copy, as it is kept beside its objects. */
export const sealManifest = z.strictObject({
  tree: z.string(),
  /** In seconds: of the first time that this work was sealed. */
  sealedAt: z.int(),
  objects: z.array(z.tuple([z.string(), z.string()])),
  patchSha256: z.string().nullable(),
  diff: worktreeDiff,
})
export type SealManifest = z.infer<typeof sealManifest>

/** Names all that would leave: the same work has the same hash, and one byte more has another. */
export function sealHash(
  base: { readonly commit: string; readonly source: string },
  found: Pick<Scanned, 'tree' | 'changes' | 'objects'>,
  patchSha256: string | null,
): string {
  const hash = createHash('sha256').update(`airlock-worktree-1\n${base.commit} ${found.tree} ${patchSha256}\n`)
  hash.update(`${Buffer.from(base.source).toString('hex')}\n`)
  for (const { path, oldMode, newMode, oldOid, newOid, sha256 } of found.changes)
    hash.update(`${oldMode} ${newMode} ${oldOid} ${newOid} ${sha256} ${nameBytes(path).toString('hex')}\n`)
  for (const [oid, sha256] of found.objects) hash.update(`${oid} ${sha256}\n`)
  return hash.digest('hex')
}
