import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** An emulated processor takes twenty times as long for everything: the bounds find hangs, they do not measure. */
const PATIENT_MS = 400_000

// Which cases run is said by their names.
process.env['TEST_CASES'] = 'all'

// oxlint-disable-next-line import/no-default-export -- vitest loads its configuration by its default export
export default defineConfig({
  root: fileURLToPath(new URL('../../..', import.meta.url)),
  test: {
    include: ['packages/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/*.long.test.ts', '**/node_modules/**'],
    reporters: ['./test/support/reporter.ts'],
    globalSetup: [
      'test/support/run-directory.ts',
      'test/support/node-for-all.ts',
      'test/support/sweep.ts',
      'test/support/server-desk.ts',
    ],
    fileParallelism: false,
    testTimeout: PATIENT_MS,
    hookTimeout: PATIENT_MS,
  },
})
