import { dropPrivileges, type Log } from '@airlock/std'
import type { DoorsConfig } from './config.ts'
import { controlDoor } from './control/control-door.ts'
import { Doors } from './doors.ts'
import { egressDoor } from './egress/egress-door.ts'
import { llmDoor } from './llm/llm-door.ts'
import { ControlPlaneLink } from './link/control-plane-link.ts'
import { listen } from './server.ts'

/** The only file that names adapters. Root is needed for our own socket alone: hostile bytes come after. */
export async function compose(config: DoorsConfig, log: Log): Promise<{ stop(): Promise<void> }> {
  const controlPlane = new ControlPlaneLink({
    socket: config.controlPlaneSocket,
    log,
    // Answers that came before the change go out before connections are cut.
    onChanged: (change) => setImmediate(() => doors.changed(change)),
    onCut: ({ sandbox, connections }) => setImmediate(() => doors.cut(sandbox, connections)),
    onLost: () => doors.lost(),
  })
  const doors = new Doors(config.doorsDir, {
    control: controlDoor({ controlPlane, log }),
    llm: llmDoor({ log }),
    egress: egressDoor({ controlPlane, log, settings: config.egress }),
  })
  const listener = await listen({ doors, link: controlPlane, socket: config.socket, socketUid: config.socketUid, log })
  dropPrivileges(config.drop ?? undefined)
  controlPlane.open()
  return {
    async stop() {
      listener.close()
      controlPlane.close()
      await doors.closeAll()
    },
  }
}
