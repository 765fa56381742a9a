import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'

const PROGRAM = fileURLToPath(new URL('../../scripts/build.ts', import.meta.url))

/** Before the first test and whenever some run again: what tests start is of the sources as they are. */
export function setup(project: TestProject): void {
  build()
  project.onTestsRerun(async () => build())
}

function build(): void {
  execFileSync(process.execPath, [PROGRAM], { stdio: ['ignore', 'ignore', 'inherit'] })
}
