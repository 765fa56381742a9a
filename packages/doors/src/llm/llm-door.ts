import { join } from 'node:path'
import { DOOR_SOCKETS } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { ConfigOf, OpenDoor } from '../doors.ts'
import { openHttpDoor } from '../listener/http-door.ts'

const BOUNDS = {
  connections: 64,
  requestsPerConnection: 1000,
  headMs: 5_000,
  requestMs: 60_000,
  idleMs: 5_000,
  silentMs: 10_000,
  rate: { burst: 200, perSecond: 100 },
} as const

/** The door of models. It has no route yet, so every request is refused. */
export function llmDoor({ log }: { readonly log: Log }): OpenDoor<ConfigOf<'llm'>> {
  return async ({ dir }) => {
    const hosts = new Set(['127.0.0.1:47080'])
    const http = await openHttpDoor({ path: join(dir, DOOR_SOCKETS.llm), hosts, routes: {}, bounds: BOUNDS, log })
    return { configure: () => {}, changed: () => http.cut(), close: async () => http.close() }
  }
}
