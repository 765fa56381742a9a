import { AirlockError } from '@airlock/contract'
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DISK_DIRS } from './disk.ts'
import type { GroupEntry } from './groups/groups.ts'
import { STAGE, STAGED, type SandboxPaths } from './paths.ts'
import { HOST_ENV } from './run-tool.ts'
import type { Runtime } from './runtime.ts'

export interface Launch {
  readonly id: string
  readonly paths: SandboxPaths
  readonly runtime: Runtime
  readonly bundle: Readonly<Record<string, unknown>>
  readonly groups: GroupEntry
  /** Host uid and gid of the user inside. */
  readonly user: number
  readonly sources: LaunchSources
}

/** Host paths that the launcher brings to the stage. */
export interface LaunchSources {
  readonly rootfs: string
  readonly program: string
  readonly node: string
  readonly guest: string
  readonly controlDir: string
  /** A mount that the runtime must not see, on hosts where it would refuse to work. */
  readonly hidden: string | undefined
}

const SCRIPT = fileURLToPath(new URL('./launch.sh', import.meta.url))
const LOG_TAIL = 2000
const DISK_OPTIONS = 'loop,nosuid,nodev,noatime,noinit_itable,X-mount.mkdir'

/** Writes what the launcher and the runtime read. */
export async function writeLaunch(launch: Launch): Promise<void> {
  const { paths, groups, user } = launch
  const dir = join(paths.dir, 'launch')
  await Promise.all([mkdir(dir), mkdir(paths.bundle), mkdir(paths.runtimeState, { recursive: true, mode: 0o700 })])
  const lines = (rows: readonly (readonly string[])[]) => rows.map((row) => `${row.join(' ')}\n`).join('')
  const owned = Object.values(DISK_DIRS).map((name) => `${STAGED.disk}/${name}`)
  await Promise.all([
    writeFile(join(dir, 'enter'), lines(groups.enter)),
    writeFile(join(dir, 'settle'), lines(groups.settle)),
    writeFile(join(dir, 'fstab'), lines(makeFstab(launch))),
    writeFile(join(dir, 'owned'), lines([[`${user}:${user}`, ...owned]])),
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
  const child = spawn('/bin/sh', [SCRIPT, paths.dir, launch.runtime.path, ...runtimeArgs(launch)], {
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
    if (code !== 0) throw new AirlockError('start_failed', undefined, { cause: await readLogs(paths) })
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

function runtimeArgs({ id, paths, runtime }: Launch): readonly string[] {
  const global = runtime.kind === 'crun' ? ['--cgroup-manager=disabled'] : []
  return [
    ...global,
    `--root=${paths.runtimeState}`,
    `--log=${paths.runtimeLog}`,
    'run',
    '--detach',
    `--bundle=${paths.bundle}`,
    `--pid-file=${paths.pidFile}`,
    id,
  ]
}

interface StageMount {
  readonly source: string
  readonly target: string
  readonly options: string
  readonly type?: string
}

function makeFstab({ paths, sources }: Launch): readonly (readonly string[])[] {
  const bind = (source: string, target: string): StageMount => ({ source, target, options: 'bind,X-mount.mkdir' })
  const bindFile = (source: string, target: string): StageMount => ({ source, target, options: 'bind,ro' })
  const { hidden } = sources
  const mounts: readonly StageMount[] = [
    { source: 'tmpfs', target: STAGE, options: 'mode=711,size=65536,nr_inodes=64', type: 'tmpfs' },
    ...(hidden === undefined ? [] : [{ source: 'tmpfs', target: hidden, options: 'ro,size=4096', type: 'tmpfs' }]),
    { source: paths.disk, target: STAGED.disk, options: DISK_OPTIONS, type: 'ext4' },
    bind(sources.rootfs, STAGED.rootfs),
    bind(sources.controlDir, STAGED.control),
    bind(sources.program, STAGED.program),
    bindFile(sources.node, `${STAGED.program}/bin/node`),
    bindFile(sources.guest, `${STAGED.program}/guest.cjs`),
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

/** Fields of an fstab are separated by blanks. */
function escape(path: string): string {
  return path.replaceAll(/[\s\\#]/gu, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
}

async function readLogs(paths: SandboxPaths): Promise<string> {
  const texts = await Promise.all(
    // Neither need exist: the launcher may have failed before.
    [paths.launchLog, paths.runtimeLog].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  return texts.join('').trim().slice(-LOG_TAIL)
}
