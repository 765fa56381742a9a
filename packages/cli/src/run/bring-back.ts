import type { CollectedArtifacts, SandboxFiles } from '@airlock/sdk'
import { copyAllOut, type Watching } from './copy-files.ts'
import { tellCollected } from './keep-artifacts.ts'
import { NewFiles } from './new-files.ts'

export interface BringBack {
  readonly files: SandboxFiles
  /** Paths in the sandbox; relative ones are below /workspace. */
  readonly out: readonly string[]
  /** Files to keep as artifacts, by patterns. */
  readonly artifacts?: ArtifactsOut
  /** How the same thing is typed again. */
  readonly command: string
}

export interface ArtifactsOut {
  readonly patterns: readonly string[]
  readonly collect: (patterns: readonly string[]) => Promise<CollectedArtifacts>
}

/** Does the work, then copies its results into the local directory, also when it failed. Answers 1 where one was missing. */
export async function bringBack(
  watching: Watching,
  { files, out, artifacts, command }: BringBack,
  work: () => Promise<number>,
): Promise<number> {
  const fresh = await NewFiles.watch(watching, files)
  const code = await work()
  const isCopied = out.length === 0 || (await copyAllOut(watching, files, out))
  const isComplete = (await keep(watching, artifacts)) && isCopied
  await fresh.tell(out, command)
  return code === 0 && !isComplete ? 1 : code
}

async function keep({ terminal }: Watching, artifacts: ArtifactsOut | undefined): Promise<boolean> {
  if (artifacts === undefined || artifacts.patterns.length === 0) return true
  return tellCollected(terminal, await artifacts.collect(artifacts.patterns))
}
