import { randomInt } from 'node:crypto'

/** The seed of `npm test` and `.ci/run`. Raised by one when `npm run test:long` has passed with the next. */
const GATE_SEED = '1'

/** `random` draws a seed, nothing means the gate's, any other text is the seed itself. */
export function chooseSeed(given: string | undefined): string {
  if (given === 'random') return String(randomInt(1_000_000))
  return given ?? GATE_SEED
}

/** The seed of this run, the same in all its workers: `vitest.config.ts` sets it. */
export function testSeed(): string {
  return process.env['TEST_SEED'] ?? GATE_SEED
}

/** FNV-1a with a last mix: similar texts give distant numbers. */
export function hash(text: string): number {
  let value = 0x811c_9dc5
  for (const char of text) value = Math.imul(value ^ (char.codePointAt(0) ?? 0), 0x0100_0193)
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b)
  return (value ^ (value >>> 13)) >>> 0
}
