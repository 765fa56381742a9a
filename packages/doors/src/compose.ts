import { readFileSync } from 'node:fs'
import type { Failpoint } from '@airlock/contract'
import { dropPrivileges, type Log } from '@airlock/std'
import type { DoorsConfig } from './config.ts'
import { brokerDoor } from './broker/broker-door.ts'
import { closeLateTool } from './broker/close-late-tool.ts'
import { controlDoor } from './control/control-door.ts'
import { Doors } from './doors.ts'
import { egressDoor } from './egress/egress-door.ts'
import { closeLate } from './egress/close-late.ts'
import { KeysClient } from './keys/keys-client.ts'
import { CallCloser } from './llm/calls/call-closer.ts'
import { CallEnd } from './llm/calls/call-end.ts'
import { Preparation } from './llm/calls/preparation.ts'
import { llmDoor } from './llm/llm-door.ts'
import { ControlPlaneLink } from './link/control-plane-link.ts'
import { listen } from './server.ts'

interface Host {
  readonly log: Log
  readonly failpoint: Failpoint
}

/** The only file that names adapters. Root is needed for our own socket alone: hostile bytes come after. */
export async function compose(config: DoorsConfig, { log, failpoint }: Host): Promise<{ stop(): Promise<void> }> {
  const controlPlane = new ControlPlaneLink({
    socket: config.controlPlaneSocket,
    log,
    modelCalls: () => closer.held,
    // Answers that came before the change go out before connections are cut.
    onChanged: (change) => setImmediate(() => doors.changed(change)),
    onCut: ({ sandbox, connections }) => setImmediate(() => doors.cut(sandbox, connections)),
    onLateConnection: (late) => closeLate(controlPlane, late, log),
    onLost: () => doors.lost(),
    onLateTool: (late) => closeLateTool(controlPlane, late, log),
    onLateOpen: ({ callId, sandbox }) => closer.close({ ...new CallEnd(callId).report(null), sandbox }),
  })
  const closer = new CallCloser(controlPlane, log)
  const preparation = new Preparation(readFileSync(config.prepareProgram, 'utf8'))
  const keys = config.keysSocket === null ? null : new KeysClient(config.keysSocket)
  const doors = new Doors(config.doorsDir, {
    control: controlDoor({ controlPlane, log }),
    llm: llmDoor({ controlPlane, keys, closer, preparation, failpoint, log }),
    egress: egressDoor({ controlPlane, log, settings: config.egress }),
    broker: brokerDoor({ controlPlane, keys, log }),
  })
  const listener = await listen({
    doors,
    link: controlPlane,
    keys,
    socket: config.socket,
    socketUid: config.socketUid,
    log,
  })
  dropPrivileges(config.drop ?? undefined)
  controlPlane.open()
  return {
    async stop() {
      listener.close()
      // Calls that are cut are reported before the connection goes.
      await doors.closeAll()
      await closer.stop()
      controlPlane.close()
      keys?.close()
      await preparation.close()
    },
  }
}
