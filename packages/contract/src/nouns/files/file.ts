import { z } from 'zod'
import { time } from '../scalars.ts'

const fileKind = z.enum(['file', 'directory', 'symlink', 'other'])
export const fileEntry = z.strictObject({
  name: z.string(),
  path: z.string().describe('Names it in every route; a `file://` URL where the bytes are not UTF-8.'),
  kind: fileKind,
  size: z.int(),
  mode: z.int(),
  modifiedAt: time,
  target: z.string().optional().describe('Where a symbolic link points.'),
})
export type FileEntry = z.infer<typeof fileEntry>

/** What an archive held, as evidence says it too. */
export const archiveSummary = z.strictObject({
  files: z.int(),
  directories: z.int(),
  links: z.int(),
  bytes: z.int().describe('Content of the files.'),
  manifest: z
    .string()
    .describe(
      'SHA-256 over one line per file, `<sha256>  <path>`, and per link, `-> <target>  <path>`, sorted by path.',
    ),
})
export type ArchiveSummary = z.infer<typeof archiveSummary>
