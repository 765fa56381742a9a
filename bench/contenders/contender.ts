/** Something that a user could pick to run a program in. Each is asked for the same: `echo` and its output. */
export interface Contender {
  readonly name: string
  /** Which version, and how it is used. */
  readonly about: string
  /** From nothing to the first result, and to the end of everything. */
  cold(): Promise<ColdTimes>
  /** A place that stays, for commands one after another. */
  open(): Promise<Place>
  /** Whether its places have a freezer. */
  readonly canPause?: boolean
  close(): Promise<void>
}

export interface ColdTimes {
  readonly resultMs: number
  readonly totalMs: number
}

export interface Place {
  run(): Promise<void>
  /** Every process that is there only because the place is. */
  pids(): Promise<readonly number[]>
  /** Stops its processes where they stand, and lets them go on. */
  readonly freezer?: { pause(): Promise<void>; resume(): Promise<void> }
  close(): Promise<void>
}

export const ECHO = { argv: ['/bin/echo', 'hello'], output: 'hello\n' } as const

/** Opens, runs, closes. */
export async function coldThrough(open: () => Promise<Place>): Promise<ColdTimes> {
  const before = performance.now()
  const place = await open()
  await place.run()
  const resultMs = performance.now() - before
  await place.close()
  return { resultMs, totalMs: performance.now() - before }
}

export function throwOnWrong(output: string, of: string): void {
  if (output !== ECHO.output) throw new TypeError(`${of} answered ${JSON.stringify(output.slice(0, 200))}.`)
}
