import { AirlockError } from '@airlock/sdk'

/** Does the work in a sandbox that ends with it: its approval holds for the same run in the next one. */
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
      hint: `Another person types: airlock approvals approve ${approval}. Then run exactly the same again; or let it wait: --wait-approval 4m`,
    })
  }
}
