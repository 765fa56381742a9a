import { join } from 'node:path'
import { DOOR_SOCKETS } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { EgressSettings } from '../config.ts'
import type { ConfigOf, OpenDoor } from '../doors.ts'
import type { ControlPlaneLink } from '../link/control-plane-link.ts'
import { Passages } from './passages.ts'
import { openProxy } from './proxy.ts'

interface EgressDoorOptions {
  /** Decides on each connection, and hears how it ended. */
  readonly controlPlane: Pick<ControlPlaneLink, 'openConnection' | 'closeConnection'>
  readonly settings: EgressSettings
  readonly log: Log
}

/**
 * The door by which a sandbox reaches hosts that rules allow: a proxy for CONNECT and plain HTTP. A host is decided on by its
 * canonical name before that is resolved, and connected to only at addresses that were checked. TLS is not opened.
 */
export function egressDoor({ controlPlane, settings, log }: EgressDoorOptions): OpenDoor<ConfigOf<'egress'>> {
  return async ({ sandbox, dir }) => {
    const passages = new Passages({ sandbox, controlPlane, settings, log })
    const proxy = await openProxy({ path: join(dir, DOOR_SOCKETS.egress), passages, log })
    return {
      // It has no settings of its own.
      configure: () => {},
      changed: (what) => {
        // The control plane names the connections that other rules do not allow.
        if (what !== 'policy') passages.cutAll(what)
      },
      cut: (connections) => passages.cut(connections),
      close: async () => {
        passages.cutAll('shut')
        await proxy.close()
        passages.close()
      },
    }
  }
}
