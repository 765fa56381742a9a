import { dropPrivileges, type Log } from '@airlock/std'
import type { DoorsConfig } from './config.ts'
import { controlDoor } from './control/control-door.ts'
import { ControlPlaneClient } from './control-plane-client.ts'
import { Doors } from './doors.ts'
import { listen } from './server.ts'

/** The only file that names adapters. Root is needed for our own socket alone: hostile bytes come after. */
export async function compose(config: DoorsConfig, log: Log): Promise<{ stop(): Promise<void> }> {
  const controlPlane = new ControlPlaneClient(config.controlPlaneSocket)
  const doors = new Doors(config.doorsDir, { control: controlDoor({ controlPlane, log }) })
  const listener = await listen({ doors, socket: config.socket, socketUid: config.socketUid, log })
  dropPrivileges(config.drop ?? undefined)
  return {
    async stop() {
      listener.close()
      await doors.closeAll()
    },
  }
}
