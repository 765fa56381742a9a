import { RecorderClient } from '@airlock/audit'
import { armFailpoint, traceSteps, type Failpoint } from '@airlock/contract'
import { createLog, Supervised, systemClock } from '@airlock/std'
import { readFileSync } from 'node:fs'
import { availableParallelism, hostname, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DataPlaneConfig } from './config.ts'
import { createOciBackend } from './isolation/backends/oci/oci-backend.ts'
import { DoorDirectories } from './sandboxes/door-directories.ts'
import { NodeImageDesk } from './sandboxes/node-images.ts'
import { PermitDesk } from './sandboxes/permit-desk.ts'
import { Sandboxes } from './sandboxes/sandboxes.ts'
import { listen } from './server/server.ts'

/** The only file that names adapters. The data plane keeps its privileges: it parses permits and guest frames, nothing else hostile. */
export async function compose(config: DataPlaneConfig): Promise<void> {
  const log = createLog({ process: 'data-plane', level: config.logLevel, write: (line) => process.stderr.write(line) })
  const audit = new RecorderClient({ socket: config.recorderSocket, spillDir: config.spillDir, log })
  let close = async (): Promise<void> => {}
  const supervised = new Supervised(async () => {
    await close()
    await audit.flush(5_000)
  })
  const failpoint: Failpoint = armFailpoint(config.failpoint ?? undefined, {
    self: 'data-plane',
    kill: (victim) => supervised.kill(victim),
    onStep: traceSteps(log, config.logLevel),
  })
  const backend = await createOciBackend({
    stateDir: config.stateDir,
    runtimeDir: config.runtimeDir,
    runtime: config.runtime,
    runsc: config.runsc,
    ...(config.cgroup === null ? {} : { cgroup: config.cgroup }),
    guestBundle: fileURLToPath(import.meta.resolve('@airlock/guest/bundle')),
    node: process.execPath,
    log,
    failpoint,
  })
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const sandboxes = new Sandboxes({
    backend,
    audit,
    clock: systemClock,
    log,
    failpoint,
    bootId,
    stateDir: config.stateDir,
    runtimeDir: config.runtimeDir,
    capacity: config.capacity,
    doors: new DoorDirectories({ dir: join(config.runtimeDir, 'doors'), uid: config.doorsUid, log }),
    permits: new PermitDesk({ publicDir: config.publicDir, stateDir: config.stateDir, clock: systemClock }),
  })
  await sandboxes.adopt()
  const machine = { memoryBytes: totalmem(), cpus: availableParallelism() }
  const health = {
    node: hostname(),
    backend: backend.name,
    bootId,
    capacity: config.capacity,
    pause: backend.capabilities.pause,
    ...machine,
  }
  const images = new NodeImageDesk({ images: backend.images, sandboxes, log })
  close = await listen({ sandboxes, images, health, socket: config.socket, socketUid: config.socketUid, log })
  supervised.ready({ node: health.node, backend: backend.name, runtime: backend.runtime })
}
