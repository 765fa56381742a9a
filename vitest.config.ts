import { defineConfig } from 'vitest/config'

const LONG = '**/*.long.test.ts'

/** Real processes on a busy machine: the bounds find hangs, they do not measure. What needs a second try is named. */
const bounds = { testTimeout: 60_000, hookTimeout: 60_000, retry: 1 }

export default defineConfig({
  test: {
    reporters: ['./test/support/reporter.ts'],
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{packages,bench}/**/*.test.ts', 'test/soak/**/*.test.ts'],
          exclude: [LONG, '**/node_modules/**'],
          ...bounds,
        },
      },
      { test: { name: 'style', include: ['test/style/**/*.test.ts'], ...bounds } },
      {
        test: {
          name: 'product',
          include: ['test/{conformance,lifecycle,mcp,security,sessions,templates}/**/*.test.ts'],
          exclude: [LONG],
          globalSetup: ['test/support/sweep.ts'],
          // Each file runs servers of its own: one at a time leaves them the machine.
          fileParallelism: false,
          sequence: { groupOrder: 1 },
          ...bounds,
        },
      },
      {
        test: {
          name: 'long',
          include: [`test/${LONG}`, `packages/${LONG}`],
          exclude: ['**/node_modules/**'],
          globalSetup: ['test/support/sweep.ts'],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
          maxConcurrency: 3,
          ...bounds,
          testTimeout: 600_000,
          hookTimeout: 120_000,
        },
      },
      // What needs a registry beyond npm and Debian: it is built there, and runs beside us.
      {
        test: {
          name: 'peers',
          include: ['test/**/*.peers.test.ts'],
          globalSetup: ['test/support/sweep.ts'],
          fileParallelism: false,
          ...bounds,
        },
      },
      // A machine in a machine, emulated where there is no KVM: alone, for it takes what two processors have.
      { test: { name: 'vm', include: ['test/vm/vm.test.ts'], sequence: { groupOrder: 3 } } },
    ],
  },
})
