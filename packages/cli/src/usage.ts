/** The words cannot be what somebody meant: says why, and what to type instead. Nothing was started. */
export class UsageError extends Error {
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.name = 'UsageError'
    this.hint = hint
  }
}
