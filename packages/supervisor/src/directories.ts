import { chmodSync, chownSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AirlockError } from '@airlock/contract'
import type { Settings } from './config.ts'

/** Host uids from here on are ours: above everything that distributions hand out to people and containers. */
const FIRST_UID = 0x7000_0000
export const CONTROL_PLANE_UID = FIRST_UID + 1
export const RECORDER_UID = FIRST_UID + 2
/** The one between builds images: `data-plane/src/isolation/backends/oci/images/confined.ts`. */
export const DOORS_UID = FIRST_UID + 4
export const KEYS_UID = FIRST_UID + 5

/** A unix socket's path has 107 bytes; the longest of ours is the one a guest dials. */
const SOCKET_PATH_BYTES = 107
const LONGEST_SOCKET = `/sandboxes/${'x'.repeat(30)}/control/guest.sock`

interface Directory {
  readonly path: string
  readonly mode: number
  readonly uid: number
  /** That of `uid` when absent. */
  readonly gid?: number
}

/** Makes the state directory alone: it is where the instance lock lives. */
export function prepareStateDirectory(settings: Settings): void {
  throwOnLongPath(settings.runtimeDir)
  prepare({ path: settings.stateDir, mode: 0o711, uid: 0 })
  throwOnClosedParent(settings.stateDir)
}

/** Makes every directory of the layout with its owner and mode, also when it is there already. Needs root. */
export function prepareDirectories(settings: Settings): void {
  for (const directory of layout(settings)) prepare(directory)
}

/**
 * Where our processes keep what Node compiled, so that the next start is quicker. Only root writes and reads it: a process
 * that gave up root and could write here would choose what root runs.
 */
export function compiledDirectory({ stateDir }: Pick<Settings, 'stateDir'>): string {
  return join(stateDir, 'compiled')
}

function layout({ stateDir, runtimeDir }: Settings): readonly Directory[] {
  return [
    { path: join(stateDir, 'control-plane'), mode: 0o700, uid: CONTROL_PLANE_UID },
    { path: join(stateDir, 'recorder'), mode: 0o700, uid: RECORDER_UID },
    { path: join(stateDir, 'keys'), mode: 0o700, uid: KEYS_UID },
    { path: join(stateDir, 'data-plane'), mode: 0o700, uid: 0 },
    { path: join(stateDir, 'public'), mode: 0o755, uid: 0 },
    { path: join(stateDir, 'logs'), mode: 0o700, uid: 0 },
    { path: compiledDirectory({ stateDir }), mode: 0o700, uid: 0 },
    { path: runtimeDir, mode: 0o711, uid: 0 },
    { path: join(runtimeDir, 'sandboxes'), mode: 0o711, uid: 0 },
    // Only its own process comes by here to a door; a sandbox sees the directory of its own, mounted.
    { path: join(runtimeDir, 'doors'), mode: 0o710, uid: 0, gid: DOORS_UID },
    // `keys` reads the copies by name, and cannot make, replace or list any.
    { path: join(runtimeDir, 'keys'), mode: 0o710, uid: 0, gid: KEYS_UID },
    { path: join(runtimeDir, 'spill'), mode: 0o711, uid: 0 },
    { path: join(runtimeDir, 'spill', 'control-plane'), mode: 0o700, uid: CONTROL_PLANE_UID },
    { path: join(runtimeDir, 'spill', 'data-plane'), mode: 0o700, uid: 0 },
  ]
}

function prepare({ path, mode, uid, gid = uid }: Directory): void {
  mkdirSync(path, { recursive: true, mode })
  // Fails closed: through a link, or in a directory of somebody else, we would give our state away.
  const found = lstatSync(path)
  if (!found.isDirectory() || (found.uid !== 0 && found.uid !== uid))
    throw new AirlockError('config_invalid', `${path} must be a directory of root, not a link or somebody else's.`)
  chmodSync(path, mode)
  chownSync(path, uid, gid)
}

function throwOnLongPath(runtimeDir: string): void {
  const room = SOCKET_PATH_BYTES - LONGEST_SOCKET.length
  if (Buffer.byteLength(runtimeDir) > room)
    throw new AirlockError('config_invalid', `${runtimeDir} is too long for sockets: at most ${room} bytes.`)
}

/** Processes of ours that gave up root must still reach their files, so everyone may pass each directory above. */
function throwOnClosedParent(path: string): void {
  for (let at = dirname(path); ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0)
      throw new AirlockError('config_invalid', `${path} cannot be used: ${at} lets only its owner in.`, {
        hint: 'Set AIRLOCK_HOME to a directory below one that everybody may enter, such as /srv.',
      })
    if (at === dirname(at)) return
  }
}
