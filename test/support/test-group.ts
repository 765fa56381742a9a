import { randomBytes } from 'node:crypto'

/** A name for a control group of a test. The next run removes it when this run is killed. */
export function testGroupName(): string {
  return `airlock-test-${testRun()}-${randomBytes(4).toString('hex')}`
}

/** Marks processes and control groups of this run. */
export function testRun(): string {
  return process.env['TEST_RUN'] ?? 'none'
}
