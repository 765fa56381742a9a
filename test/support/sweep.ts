import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import { removeHome } from './leftovers.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Marks the state directories of this run. */
    testRun: string
  }
}

/** After the last test: whatever a failed test could not end or remove is ended and removed here. */
export function setup(project: TestProject): () => Promise<void> {
  const run = `${randomBytes(2).toString('hex')}-`
  project.provide('testRun', run)
  return async () => {
    for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(`al-${run}`))) {
      // The test that left it has failed already; that it left something is for people to read.
      await removeHome(join(tmpdir(), name)).catch((error: unknown) => console.error(error))
    }
  }
}
