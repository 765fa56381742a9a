import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GuestRuntime } from '@airlock/contract/guest'
import { TestGuest } from './test-guest.ts'
import type { FinishedStep, TestSession } from './test-host.ts'
import { type Attack, brokenPromises, torture, type TortureResult, type TortureTarget } from './torture.ts'

/** Rows of the table against a real guest without walls. */
export function describeTorture(
  runtime: GuestRuntime,
  rows: readonly { readonly name: string; readonly attack: Attack }[],
): void {
  describe(`a ${runtime} session whose code`, () => {
    let guest: TestGuest
    beforeAll(async () => {
      guest = await TestGuest.start()
    })
    afterAll(async () => {
      await guest.stop()
    })

    it.each(rows)('$name leaves the next step intact', async ({ attack }) => {
      const session = await guest.open(runtime)
      try {
        const report = await torture(runtime, targetOf(session), attack)
        expect(report.next).toEqual(report.wanted)
        expect(brokenPromises(attack, report)).toEqual([])
        expect(report.attack).toMatchObject(attack.expected ?? {})
      } finally {
        await session.close()
      }
    })
  })
}

function targetOf(session: TestSession): TortureTarget {
  return {
    run: async (code, options) => toResult(await session.run(code, options)),
    interrupt: async () => await session.interrupt(),
  }
}

function toResult({ exitCode, stdout, stderr, rich, restarted }: FinishedStep): TortureResult {
  const status = exitCode === 0 ? 'completed' : 'failed'
  return { status, stdout, stderr, error: errorName(rich.at(-1)), restarted }
}

function errorName(line: unknown): string | null {
  if (typeof line !== 'object' || line === null || !('error' in line)) return null
  const { error } = line
  return typeof error === 'object' && error !== null && 'name' in error ? String(error.name) : null
}
