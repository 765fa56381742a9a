import { globSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { chooseSeed } from './test/support/seed.ts'

const LONG = '**/*.long.test.ts'
const FLOODS = 'test/security/floods.test.ts'
const FLOODS_TABLE = 'test/security/floods-table.long.test.ts'

/** Real processes on a busy machine: the bounds find hangs, they do not measure. There is no `retry`: `scripts/test` looks again. */
const bounds = { testTimeout: 200_000, hookTimeout: 300_000, expect: { poll: { timeout: 100_000 } } }

/** After everything else, a few at a time: they wait for disks, networks and other machines. */
const late = { sequence: { groupOrder: 2 }, maxWorkers: 3 }

// Workers inherit it: all of them draw the same rows and examples.
/* oxlint-disable node/no-process-env -- the one way to all workers */
process.env['TEST_SEED'] = chooseSeed(process.env['TEST_SEED'])
/* oxlint-enable node/no-process-env */

/** Parts of `npm run test:long` by name. `lifecycle` has every long test that no other part has. */
const LONG_PARTS: Readonly<Record<string, readonly string[]>> = {
  crash: ['test/lifecycle/crash.long.test.ts'],
  runtimes: ['packages/**/*.conformance.long.test.ts', 'test/sessions/torture.long.test.ts'],
  image: ['test/deploy/*.long.test.ts'],
  templates: ['test/templates/*.long.test.ts'],
  soak: ['test/lifecycle/soak.long.test.ts'],
  packed: ['test/packages/*.long.test.ts'],
  residue: ['test/security/attacks/residue.long.test.ts'],
  lifecycle: [`test/${LONG}`, `packages/${LONG}`],
}

function namedLongFiles(): string[] {
  return [
    FLOODS_TABLE,
    ...Object.entries(LONG_PARTS).flatMap(([name, include]) => (name === 'lifecycle' ? [] : include)),
  ]
}

/** Tests that say of a store that what holds on one holds on the other. */
function onEveryStore(): string[] {
  return globSync('packages/control-plane/src/**/*.test.ts').filter((file) =>
    /\bDIALECTS\b/.test(readFileSync(file, 'utf8')),
  )
}

export default defineConfig({
  test: {
    reporters: ['./test/support/reporter.ts'],
    maxWorkers: 4,
    globalSetup: ['test/support/run-directory.ts', 'test/support/build.ts', 'test/support/node-for-all.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{packages,bench,scripts}/**/*.test.ts', 'test/soak/**/*.test.ts'],
          exclude: [LONG, '**/node_modules/**'],
          globalSetup: ['test/support/one-postgres.ts'],
          setupFiles: ['test/support/fast-check.ts'],
          env: { TEST_DIALECTS: 'SQLite' },
          // There is no state in modules: a worker loads each once, not once a file.
          isolate: false,
          ...bounds,
        },
      },
      // The same on the other store: there a test costs four times as much.
      {
        test: {
          name: 'postgres',
          include: onEveryStore(),
          globalSetup: ['test/support/one-postgres.ts'],
          setupFiles: ['test/support/fast-check.ts'],
          env: { TEST_DIALECTS: 'PostgreSQL' },
          isolate: false,
          ...bounds,
          ...late,
        },
      },
      { test: { name: 'style', include: ['test/style/**/*.test.ts'], ...bounds } },
      {
        test: {
          name: 'product',
          include: [
            'test/{artifacts,dashboard,jobs,lifecycle,mcp,models,runs,security,sessions,templates,tools,worktrees}/**/*.test.ts',
          ],
          exclude: [LONG, '**/*.gate.test.ts', FLOODS],
          globalSetup: ['test/support/sweep.ts', 'test/support/server-desk.ts'],
          isolate: false,
          ...bounds,
        },
      },
      // Alone, because they slow everything beside them, and everything beside them slows what they measure.
      {
        test: {
          name: 'floods',
          include: [FLOODS],
          globalSetup: ['test/support/sweep.ts'],
          ...bounds,
          sequence: { groupOrder: 1 },
          maxWorkers: 1,
        },
      },
      // The gate itself, and one server for each setting that nearly all other tests leave alone.
      {
        test: {
          name: 'gate',
          include: ['test/**/*.gate.test.ts'],
          globalSetup: ['test/support/sweep.ts'],
          ...bounds,
          ...late,
        },
      },
      ...Object.entries(LONG_PARTS).map(([name, include]) => ({
        test: {
          name,
          include: [...include],
          exclude: ['**/node_modules/**', ...(name === 'lifecycle' ? namedLongFiles() : [])],
          globalSetup: ['test/support/sweep.ts', 'test/support/server-desk.ts'],
          maxConcurrency: 3,
          ...bounds,
          ...late,
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      })),
      // Alone, as `floods`.
      {
        test: {
          name: 'floods-table',
          include: [FLOODS_TABLE],
          globalSetup: ['test/support/sweep.ts'],
          ...bounds,
          sequence: { groupOrder: 4 },
          maxWorkers: 1,
        },
      },
      // What needs a registry beyond npm and Debian: it is built there, and runs beside us.
      {
        test: {
          name: 'peers',
          include: ['test/**/*.peers.test.ts'],
          globalSetup: ['test/support/sweep.ts'],
          ...bounds,
          ...late,
        },
      },
      // A machine in a machine, emulated where there is no KVM. Alone, because that takes all processors.
      { test: { name: 'vm', include: ['test/vm/vm.test.ts'], sequence: { groupOrder: 3 }, maxWorkers: 1 } },
    ],
  },
})
