import { sleep } from '@airlock/std'

/** Every answer leaves at a multiple of this. */
const FLOOR_MS = 50

/** Waits until the next multiple of the floor, or until nobody waits for the answer. It is a timer: it holds no place of a call. */
export async function untilFloor(startedAt: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.ceil(untilMultiple(performance.now() - startedAt)), signal).catch(() => {
    // The program is gone, so no answer leaves.
  })
}

/** Milliseconds from the elapsed time to the next multiple. */
export function untilMultiple(elapsedMs: number): number {
  return Math.max(1, Math.ceil(elapsedMs / FLOOR_MS)) * FLOOR_MS - elapsedMs
}
