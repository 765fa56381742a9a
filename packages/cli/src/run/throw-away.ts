import { AirlockError } from '@airlock/sdk'

/** Does the work in a sandbox that nobody keeps: an approval is for that one, and comes too late for the next. */
export async function inThrowAway<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof AirlockError) || cause.code !== 'approval_required' || cause.approval === undefined)
      throw cause
    const { approval } = cause
    throw new AirlockError(cause.code, cause.message, {
      cause,
      approval,
      hint: `This run has ended, so ${approval} is too late. Run it again with --wait-approval 4m; meanwhile another person types: airlock approvals ls, airlock approvals approve ID`,
    })
  }
}
