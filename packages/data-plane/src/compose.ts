import { RecorderClient } from '@airlock/audit'
import { armFailpoint, traceSteps, type Failpoint } from '@airlock/contract'
import { createLog, type Log, NodeClock, Supervised, takeFile } from '@airlock/std'
import { readFileSync } from 'node:fs'
import { availableParallelism, hostname, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ArtifactFiles } from './artifacts/artifact-files.ts'
import type { DataPlaneConfig } from './config.ts'
import { createOciBackend } from './isolation/backends/oci/oci-backend.ts'
import type { IsolationBackend } from './isolation/backend.ts'
import { guardBackend } from './isolation/guarded-backend.ts'
import { Probes } from './isolation/probe/probes.ts'
import { DoorDirectories } from './sandboxes/door-directories.ts'
import { NodeImageDesk } from './sandboxes/node-images.ts'
import { PermitDesk } from './sandboxes/permit-desk.ts'
import { openSandboxes } from './sandboxes/sandboxes.ts'
import { listen } from './server/server.ts'
import { UnixListener } from './session/unix-listener.ts'
import { Vault } from './vault/vault.ts'

/** The only file that names adapters. The data plane keeps its privileges: it parses permits and guest frames, nothing else hostile. */
export async function compose(config: DataPlaneConfig): Promise<void> {
  // Sandboxes read files that are made here as other uids; private files have modes of their own.
  process.umask(0o022)
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
    takeFile,
    onStep: traceSteps(log, config.logLevel),
  })
  const { stateDir, runtimeDir } = config
  const clock = new NodeClock(config.publicDir)
  const { backend, runtime } = await BACKENDS[config.backend](config, { log, failpoint })
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const probes = new Probes({ backend, stateDir, runtimeDir, bootId, log })
  const vault = await Vault.open({
    dir: join(stateDir, 'vault'),
    retentionMs: config.vaultRetentionMs,
    maxBytes: config.vaultBytes,
    hasRoom: () => backend.hostDisk.hasRoom(),
    clock,
    log,
  })
  const artifacts = await ArtifactFiles.open({
    dir: join(stateDir, 'artifacts'),
    hasRoom: () => backend.hostDisk.hasRoom(),
    log,
    failpoint,
  })
  const sandboxes = await openSandboxes({
    backend,
    probes,
    audit,
    clock,
    log,
    failpoint,
    bootId,
    stateDir,
    runtimeDir,
    capacity: config.capacity,
    doors: new DoorDirectories({ dir: join(runtimeDir, 'doors'), uid: config.doorsUid, log }),
    vault,
    artifacts,
    listenerIn: (controlDir) => new UnixListener(controlDir),
    permits: new PermitDesk({ publicDir: config.publicDir, stateDir, clock }),
  })
  probes.prepare('standard', 'host')
  const health = describe(backend, bootId, config.capacity)
  const images = new NodeImageDesk({ images: backend.images, registry: sandboxes.registry, log })
  const { socket, socketUid } = config
  const stopListening = await listen({ sandboxes, images, health, socket, socketUid, log })
  close = async () => void (await Promise.all([stopListening(), probes.close()]))
  supervised.ready({ node: health.node, backend: backend.name, runtime })
}

/** By the setting `backend`. */
const BACKENDS: Record<DataPlaneConfig['backend'], typeof makeOci> = { oci: makeOci }

interface MadeBackend {
  readonly backend: IsolationBackend
  /** What it runs sandboxes with, for the log. */
  readonly runtime: string
}

async function makeOci(
  config: DataPlaneConfig,
  { log, failpoint }: { readonly log: Log; readonly failpoint: Failpoint },
): Promise<MadeBackend> {
  const bare = await createOciBackend({
    stateDir: config.stateDir,
    runtimeDir: config.runtimeDir,
    runtime: config.runtime,
    runsc: config.runsc,
    ...(config.cgroup === null ? {} : { cgroup: config.cgroup }),
    diskReserveBytes: config.diskReserveBytes,
    disks: config.allocatesDisks ? 'whole' : 'sparse',
    guestBundle: fileURLToPath(import.meta.resolve('@airlock/guest/bundle')),
    node: process.execPath,
    log,
    failpoint,
  })
  return { backend: guardBackend(bare, log), runtime: bare.runtime }
}

function describe({ name, capabilities }: IsolationBackend, bootId: string, capacity: number) {
  const machine = { memoryBytes: totalmem(), cpus: availableParallelism() }
  return { node: hostname(), backend: name, bootId, capacity, pause: capabilities.pause, ...machine }
}
