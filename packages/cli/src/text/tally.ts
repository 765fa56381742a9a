/** What was copied so far. Links and devices are not: they would mean something else on the other side. */
export interface Tally {
  files: number
  bytes: number
  readonly skipped: string[]
}
