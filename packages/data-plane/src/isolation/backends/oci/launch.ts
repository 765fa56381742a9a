import { AirlockError } from '@airlock/contract'
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxSpec } from '../../backend.ts'
import type { Bundle } from './bundle.ts'
import { DISK_DIRS } from './disk.ts'
import { REFUSED_EXIT } from './grants/grants.ts'
import type { GroupEntry } from './groups/groups.ts'
import { STAGE, STAGED, stagedDoor, stagedOverlay, type SandboxPaths } from './paths.ts'
import { HOST_ENV } from './run-tool.ts'
import type { Runtime } from './runtime.ts'

export interface Launch {
  readonly id: string
  readonly paths: SandboxPaths
  readonly runtime: Runtime
  /** The launcher itself. */
  readonly script: string
  readonly bundle: Bundle
  readonly groups: GroupEntry
  /** Host uid and gid of the user inside. */
  readonly user: number
  readonly sources: LaunchSources
  /** Directories that the root lacks and that the runtime needs to mount on. */
  readonly points: readonly string[]
  /** Mounts of the host that are seen inside with the directory they are in: in the launcher's own view they become read-only. */
  readonly closed: readonly string[]
  /** For the program that brings what was granted to the stage. Undefined when nothing was. */
  readonly grants: string | undefined
}

/** Host paths that the launcher brings to the stage. */
export interface LaunchSources {
  readonly root: readonly string[]
  readonly overlays: Readonly<Record<string, readonly string[]>>
  readonly program: string
  readonly controlDir: string
  /** Undefined where the kernel inside has a /proc of its own. */
  readonly proc: string | undefined
  readonly doors: SandboxSpec['doors']
  /** A mount that the runtime must not see, on hosts where it would refuse to work. */
  readonly hidden: string | undefined
}

const LOG_TAIL = 2000
/** No barriers: a disk does not outlive the host, so to sync is to hand over to the host, and need not wait for its device. */
const DISK_OPTIONS = 'loop,nosuid,nodev,noatime,noinit_itable,nobarrier,X-mount.mkdir'

/** Writes what the launcher and the runtime read. */
export async function writeLaunch(launch: Launch): Promise<void> {
  const { paths, groups, user } = launch
  const dir = join(paths.dir, 'launch')
  const points = launch.points.map(async (point) => await mkdir(join(pointsOf(paths), point), { recursive: true }))
  await Promise.all([
    ...points,
    mkdir(dir),
    mkdir(paths.bundle),
    mkdir(paths.runtimeState, { recursive: true, mode: 0o700 }),
  ])
  const lines = (rows: readonly (readonly string[])[]) => rows.map((row) => `${row.join(' ')}\n`).join('')
  const owned = Object.values(DISK_DIRS).map((name) => `${STAGED.disk}/${name}`)
  await Promise.all([
    writeFile(join(dir, 'enter'), lines(groups.enter)),
    writeFile(join(dir, 'settle'), lines(groups.settle)),
    writeFile(join(dir, 'fstab'), lines(makeFstab(launch))),
    writeFile(join(dir, 'owned'), lines([[`${user}:${user}`, ...owned]])),
    writeFile(join(dir, 'closed'), lines(launch.closed.map((point) => [point]))),
    ...(launch.grants === undefined ? [] : [writeFile(join(dir, 'grants'), launch.grants)]),
    writeFile(join(paths.bundle, 'config.json'), JSON.stringify(launch.bundle)),
  ])
}

/**
 * Runs the launcher to its end. The sandbox outlives it and us: it gets no stream of ours and a session of its own.
 * Aborting kills the launcher; what it started is found by its groups.
 */
export async function runLaunch(launch: Launch, signal: AbortSignal): Promise<void> {
  const { paths } = launch
  signal.throwIfAborted()
  const log = openSync(paths.launchLog, 'a', 0o600)
  const child = spawn('/bin/sh', [launch.script, paths.dir, launch.runtime.path, ...runtimeArgs(launch)], {
    stdio: ['ignore', log, log],
    env: HOST_ENV,
    detached: true,
    cwd: '/',
  })
  closeSync(log)
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', resolve)
    })
    signal.throwIfAborted()
    if (code === REFUSED_EXIT) throw new AirlockError('grant_refused', await readRefusal(paths))
    if (code !== 0) throw new AirlockError('start_failed', undefined, { cause: await readLogs(paths) })
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

function runtimeArgs({ id, paths, runtime }: Launch): readonly string[] {
  return [
    ...GLOBAL_ARGS[runtime.kind],
    ...runtime.args,
    `--root=${paths.runtimeState}`,
    `--log=${paths.runtimeLog}`,
    'run',
    '--detach',
    `--bundle=${paths.bundle}`,
    `--pid-file=${paths.pidFile}`,
    id,
  ]
}

/** Groups are ours. Of gVisor: no network, sockets of the host may be dialled and not made, and our filter holds inside too. */
const GLOBAL_ARGS: Readonly<Record<Runtime['kind'], readonly string[]>> = {
  crun: ['--cgroup-manager=disabled'],
  runc: [],
  runsc: ['--ignore-cgroups', '--network=none', '--host-uds=open', '--oci-seccomp'],
}

interface StageMount {
  readonly source: string
  readonly target: string
  readonly options: string
  readonly type?: string
}

/** Laid over the root, which is not ours to change. */
function pointsOf(paths: SandboxPaths): string {
  return join(paths.dir, 'points')
}

function makeFstab({ paths, sources, points }: Launch): readonly (readonly string[])[] {
  const bind = (source: string, target: string): StageMount => ({ source, target, options: 'bind,X-mount.mkdir' })
  const { hidden } = sources
  const mounts: readonly StageMount[] = [
    { source: 'tmpfs', target: STAGE, options: 'mode=711,size=65536,nr_inodes=256', type: 'tmpfs' },
    ...(hidden === undefined ? [] : [{ source: 'tmpfs', target: hidden, options: 'ro,size=4096', type: 'tmpfs' }]),
    { source: paths.disk, target: STAGED.disk, options: DISK_OPTIONS, type: 'ext4' },
    // gVisor remounts its root with no more than "ro", and may not take back what else was said of it.
    ...(points.length > 0
      ? layered([pointsOf(paths), ...sources.root], STAGED.rootfs, 'ro')
      : layered(sources.root, STAGED.rootfs)),
    ...Object.entries(sources.overlays).flatMap(([name, layers]) => layered(layers, stagedOverlay(name))),
    bind(sources.controlDir, STAGED.control),
    ...(sources.proc === undefined ? [] : [bind(sources.proc, STAGED.proc)]),
    ...sources.doors.map(({ name, source }) => bind(source, stagedDoor(name))),
    bind(sources.program, STAGED.program),
  ]
  return mounts.map(({ source, target, options, type = 'none' }) => [
    escape(source),
    escape(target),
    type,
    options,
    '0',
    '0',
  ])
}

/** One directory is bound; several become one view, through places on the stage whose names need no escape in options. */
function layered(layers: readonly string[], target: string, flags = 'ro,nosuid,nodev'): readonly StageMount[] {
  const [only, ...more] = layers
  if (only !== undefined && more.length === 0) return [{ source: only, target, options: 'bind,X-mount.mkdir' }]
  const places = layers.map((source, at) => ({ source, target: `${target}-${at}`, options: 'bind,X-mount.mkdir' }))
  const lower = places.map((place) => place.target).join(':')
  return [
    ...places,
    { source: 'overlay', target, options: `${flags},lowerdir=${lower},X-mount.mkdir`, type: 'overlay' },
  ]
}

/** Fields of an fstab are separated by blanks. */
function escape(path: string): string {
  return path.replaceAll(/[\s\\#]/gu, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
}

/** In the words of who refused. */
async function readRefusal(paths: SandboxPaths): Promise<string> {
  return (await readFile(join(paths.dir, 'launch', 'refused'), 'utf8')).trim().slice(-LOG_TAIL)
}

async function readLogs(paths: SandboxPaths): Promise<string> {
  const texts = await Promise.all(
    // Neither need exist: the launcher may have failed before.
    [paths.launchLog, paths.runtimeLog].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  return texts.join('').trim().slice(-LOG_TAIL)
}
