import { setImmediate } from 'node:timers/promises'

/** Lets whatever waits have its turn: steps come before what is counted of them. */
export async function nextTurn(): Promise<void> {
  await setImmediate()
}
