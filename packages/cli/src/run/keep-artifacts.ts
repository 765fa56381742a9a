import type { CollectedArtifacts } from '@airlock/sdk'
import { formatBytes } from '@airlock/std'
import { sanitizeLine } from '../text/sanitize.ts'
import type { Terminal } from '../text/terminal.ts'

/** Says what was kept and what was left out. False when nothing was kept. */
export function tellCollected(
  terminal: Pick<Terminal, 'note'>,
  {
    items,
    skipped,
    skippedCount,
  }: Pick<CollectedArtifacts, 'skipped' | 'skippedCount'> & {
    readonly items: readonly { readonly id: string; readonly name: string; readonly size: number }[]
  },
): boolean {
  for (const { id, name, size } of items)
    terminal.note(`airlock: kept ${sanitizeLine(name)} (${formatBytes(size)}) as ${id}`)
  for (const { name, why } of skipped) terminal.note(`airlock: left out ${sanitizeLine(name)}: ${sanitizeLine(why)}`)
  if (skippedCount > skipped.length) terminal.note(`airlock: left out ${skippedCount - skipped.length} more`)
  if (items.length === 0) terminal.note('airlock: no file was kept as an artifact')
  return items.length > 0
}
