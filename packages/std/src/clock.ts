/** Milliseconds since the epoch. Injected wherever time decides something, so that tests can own it. */
export interface Clock {
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }
