import type { Log } from '@airlock/std'
import type { ControlPlaneLink, LateConnection } from '../link/control-plane-link.ts'

const REPORT_MS = 10_000

/** Closes a connection that was allowed when nobody waited for it any more: nothing was dialled. */
export function closeLate(
  controlPlane: Pick<ControlPlaneLink, 'closeConnection'>,
  { connection, sandbox }: LateConnection,
  log: Log,
): void {
  const nothing = { address: null, sent: 0, received: 0 }
  const why = { reason: 'client gone', message: 'Nobody waited for the connection any more.' }
  void controlPlane
    .closeConnection(
      { sandbox, connection, ...nothing, ...why },
      { answerMs: REPORT_MS, signal: new AbortController().signal },
    )
    .catch((error: unknown) => log.warn('could not report the end of a connection', { sandbox, connection, error }))
}
