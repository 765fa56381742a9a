import { nodeImage } from '@airlock/contract'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** What is written beside an image: without it there is none. */
const manifest = z.strictObject({
  ...nodeImage.shape,
  /** What of this host it stands on: packages and their versions, and the machine. Empty for one that was imported. */
  base: z.record(z.string(), z.string()),
})
export type Manifest = z.infer<typeof manifest>

export function writeManifest(dir: string, content: Manifest): void {
  writeFileSync(join(dir, 'image.json'), JSON.stringify(content), { mode: 0o600, flush: true })
}

/** Undefined when there is none or it is not ours. */
export function readManifest(dir: string): Manifest | undefined {
  try {
    const parsed = manifest.safeParse(JSON.parse(readFileSync(join(dir, 'image.json'), 'utf8')))
    return parsed.success ? parsed.data : undefined
  } catch {
    // Not there, or not whole: either way not an image.
    return undefined
  }
}
