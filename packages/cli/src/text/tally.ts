/** What was copied so far. */
export interface Tally {
  files: number
  bytes: number
  /** What a copy of one directory would come to, where that is known. */
  total?: { readonly files: number; readonly bytes: number } | undefined
  /** Names that no copy may have, such as devices and links that lead out. */
  readonly skipped: { readonly path: string; readonly why: string }[]
}

export function newTally(): Tally {
  return { files: 0, bytes: 0, skipped: [] }
}
