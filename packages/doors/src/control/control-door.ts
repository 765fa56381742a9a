import { join } from 'node:path'
import { AirlockError, askBody, type AskBody, BOUNDS, describeIssues, DOOR_SOCKETS } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { decodeText, parseJson } from '@airlock/wire'
import type { OpenDoor } from '../doors.ts'
import type { ControlPlaneLink } from '../link/control-plane-link.ts'
import { json, openHttpDoor, type Route } from '../listener/http-door.ts'

interface ControlDoorOptions {
  /** Asks the control plane; rejects with a typed error. */
  readonly controlPlane: Pick<ControlPlaneLink, 'call'>
  readonly log: Log
}

const ANSWER_MS = 5_000
const HOSTS: ReadonlySet<string> = new Set(['airlock', 'localhost'])
const CONNECTIONS = {
  connections: 16,
  requestsPerConnection: 100,
  headMs: 5_000,
  requestMs: 5_000,
  idleMs: 5_000,
  silentMs: 10_000,
  rate: { burst: 20, perSecond: 10 },
} as const
/** Each renewal is a record: no sandbox may fill the evidence with them. */
const RENEWAL_RATE = { burst: 10, perSecond: 0.1 }
/** The same, and a person reads each new ask. */
const ASK_RATE = { burst: 20, perSecond: 0.2 }
/** Room for the detail, however it is written. */
const MAX_ASK_BYTES = 16 * 1024

/**
 * The door by which a program inside asks who it is, says that it lives, renews its token, and asks whether it may do something.
 * Which socket it came by is who it is; the token has to agree, and that is for the control plane to say. Nothing that came in is
 * passed on but the token and an ask that was parsed: what is asked there is written anew.
 */
export function controlDoor({ controlPlane, log }: ControlDoorOptions): OpenDoor {
  return async ({ sandbox, dir }) => {
    const route = (ask: 'self' | 'heartbeat' | 'renew'): Route => ({
      maxBodyBytes: 0,
      answer: json(async ({ token, signal }) =>
        controlPlane.call({ sandbox, token, ask }, { answerMs: ANSWER_MS, signal }),
      ),
    })
    const http = await openHttpDoor({
      path: join(dir, DOOR_SOCKETS.control),
      hosts: HOSTS,
      routes: {
        'GET /v1/self': route('self'),
        'POST /v1/self/heartbeat': route('heartbeat'),
        'POST /v1/self/token': { ...route('renew'), rate: RENEWAL_RATE },
        'POST /v1/self/ask': {
          maxBodyBytes: MAX_ASK_BYTES,
          rate: ASK_RATE,
          atOnce: BOUNDS.pendingAsks,
          answer: json(async ({ requestId, token, body: bytes, signal }) => {
            const body = parseAsk(bytes)
            const answerMs = body.waitSeconds * 1000 + ANSWER_MS
            return controlPlane.call({ sandbox, token, ask: 'ask', requestId, body }, { answerMs, signal })
          }),
        },
      },
      bounds: CONNECTIONS,
      log,
    })
    return {
      // It has no settings.
      configure: () => {},
      changed: (what) => {
        // It keeps no decision, so rules that change need nothing of it.
        if (what === 'revoked' || what === 'shut') http.cut()
      },
      close: async () => http.close(),
    }
  }
}

/** Fails closed: a field that is not known, or a detail that nobody could read whole, is refused. */
function parseAsk(bytes: Buffer): AskBody {
  const parsed = askBody.safeParse(parseJson(decodeText(bytes)))
  if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
  return parsed.data
}
