/** What the kernel says of a process in `/proc/<pid>/stat`. */
export interface ProcessStat {
  /** Whether only its exit status is left of it. */
  readonly isZombie: boolean
  /** The pid of who leads its session. */
  readonly session: number
  /** When it started, in clock ticks since boot: pids are used again, a pid with its start time is not. */
  readonly startTicks: string
}

export function parseProcessStat(text: string): ProcessStat {
  // The name in brackets may contain anything, brackets and blanks too.
  const [state, , , session, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return {
    isZombie: state === 'Z',
    session: Number(session),
    startTicks: rest[15] ?? '',
  }
}
