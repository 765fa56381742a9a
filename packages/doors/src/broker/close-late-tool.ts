import type { Log } from '@airlock/std'
import type { ControlPlaneLink, LateTool } from '../link/control-plane-link.ts'

const REPORT_MS = 10_000

/** Closes a call that was allowed when nobody waited for it any more: nothing was sent. */
export function closeLateTool(
  controlPlane: Pick<ControlPlaneLink, 'closeToolCall'>,
  { call, sandbox }: LateTool,
  log: Log,
): void {
  const end = { status: null, received: 0, error: 'timeout', message: 'Nobody waited for the call any more.' }
  void controlPlane
    .closeToolCall({ sandbox, call, ...end }, { answerMs: REPORT_MS, signal: new AbortController().signal })
    .catch((error: unknown) => log.warn('could not report the end of a call of a tool', { sandbox, call, error }))
}
