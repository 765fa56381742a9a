import type { SandboxFiles } from '@airlock/sdk'
import { withProgress } from '../text/progress.ts'
import { newTally, type Tally } from '../text/tally.ts'
import type { Terminal } from '../text/terminal.ts'
import { formatBytes } from '../text/units.ts'
import { copyIn } from './copy-in.ts'
import { copyOut } from './copy-out.ts'

export interface Watching {
  readonly terminal: Terminal
  /** Says nothing beside errors: somebody reads JSON. */
  readonly json: boolean
}

/** How far a copy is. */
export function describeTally({ files, bytes, total }: Tally): string {
  if (!total) return `${files} files, ${formatBytes(bytes)}`
  return `${files} of ${total.files} files, ${formatBytes(bytes)} of ${formatBytes(total.bytes)}`
}

/** For a person alone: not where output is read by a program. */
export function noteTo({ terminal, json }: Watching): (text: string) => void {
  return (text) => {
    if (!json && terminal.isWatched) terminal.note(`airlock: ${text}`)
  }
}

/** Copies local files and directories into /workspace. */
export async function copyAllIn(
  watching: Watching,
  files: SandboxFiles,
  plan: { readonly paths: readonly string[]; readonly all: boolean },
): Promise<void> {
  if (plan.paths.length === 0) return
  const tally = newTally()
  const note = noteTo(watching)
  const copy = async (): Promise<void> => {
    for (const from of plan.paths) await copyIn(files, { from, to: '/workspace/', all: plan.all, note }, tally)
  }
  await (watching.json ? copy() : withProgress(watching.terminal, () => `Sending ${describeTally(tally)}`, copy))
  for (const { path, why } of tally.skipped) note(`left out ${path}: it ${why}`)
}

/** Copies results into the local directory. Answers whether all of them were there. */
export async function copyAllOut(watching: Watching, files: SandboxFiles, paths: readonly string[]): Promise<boolean> {
  const tally = newTally()
  let isComplete = true
  const copy = async (): Promise<void> => {
    for (const from of paths) {
      try {
        await copyOut(files, { from, to: '.', all: true, terminal: watching.terminal }, tally)
      } catch (error) {
        isComplete = false
        const why = error instanceof Error ? error.message : String(error)
        // One that is missing keeps nobody from getting the others.
        watching.terminal.note(`airlock: could not bring back ${from}: ${why}`)
      }
    }
  }
  await (watching.json ? copy() : withProgress(watching.terminal, () => `Receiving ${describeTally(tally)}`, copy))
  for (const { path, why } of tally.skipped) noteTo(watching)(`left out ${path}: it ${why}`)
  return isComplete
}
