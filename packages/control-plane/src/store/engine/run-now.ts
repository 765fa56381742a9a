export type Parameter = string | number | null

export interface RawAnswer {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly changes: number
}

/** Runs a statement at once, where the database is in this process. Undefined while somebody holds the connection. */
export type RunNow = (text: string, parameters: readonly Parameter[]) => RawAnswer | undefined
