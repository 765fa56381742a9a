import type { SandboxFiles } from '@airlock/sdk'
import { copyAllOut, type Watching } from './copy-files.ts'
import { NewFiles } from './new-files.ts'

export interface BringBack {
  readonly files: SandboxFiles
  /** Paths in the sandbox; relative ones are below /workspace. */
  readonly out: readonly string[]
  /** How the same thing is typed again. */
  readonly command: string
}

/** Does the work, then copies its results into the local directory, also when it failed. Answers 1 where one was missing. */
export async function bringBack(
  watching: Watching,
  { files, out, command }: BringBack,
  work: () => Promise<number>,
): Promise<number> {
  const fresh = await NewFiles.watch(watching, files)
  const code = await work()
  const isComplete = out.length === 0 || (await copyAllOut(watching, files, out))
  await fresh.tell(out, command)
  return code === 0 && !isComplete ? 1 : code
}
