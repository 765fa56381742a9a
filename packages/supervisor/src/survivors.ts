import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { deadline, waitFor } from '@airlock/std'
import { identify, lives, type ProcessIdentity } from './process-identity.ts'

const LEAVE_MS = 1_000
const DIE_MS = 5_000

/** Which processes we run, on disk, so that the next supervisor finds them if we are killed. */
export class ProcessList {
  readonly #path: string
  readonly #entries = new Map<string, ProcessIdentity>()

  constructor(path: string) {
    this.#path = path
  }

  set(name: string, pid: number | undefined): void {
    const identity = pid === undefined ? undefined : identify(pid)
    if (identity === undefined) this.#entries.delete(name)
    else this.#entries.set(name, identity)
    const temporary = `${this.#path}.new`
    try {
      writeFileSync(temporary, JSON.stringify([...this.#entries.values()]), { mode: 0o600 })
      renameSync(temporary, this.#path)
    } catch {
      // A full disk: an older list stays, whose dead pids are told by their start time. Supervision must go on.
    }
  }
}

/**
 * Waits until the processes of a supervisor that was killed are gone: they notice and leave by themselves, and are
 * killed if they do not, which loses nothing. Two generations at once would fight over sockets and sandboxes.
 */
export async function endSurvivors(path: string): Promise<void> {
  await Promise.all(readIdentities(path).map(async (survivor) => endSurvivor(survivor)))
}

async function endSurvivor(survivor: ProcessIdentity): Promise<void> {
  const left = await goneWithin(survivor, LEAVE_MS)
  if (left || !lives(survivor)) return
  process.kill(survivor.pid, 'SIGKILL')
  await goneWithin(survivor, DIE_MS)
}

async function goneWithin(identity: ProcessIdentity, ms: number): Promise<boolean> {
  const gone = () => (lives(identity) ? undefined : true)
  return waitFor(gone, { signal: deadline(ms), everyMs: 20 }).catch(() => false)
}

function readIdentities(path: string): readonly ProcessIdentity[] {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return Array.isArray(value) ? value.filter(isIdentity) : []
  } catch {
    // The first start, or a list torn by a crash of the host, after which none of them lives.
    return []
  }
}

function isIdentity(value: unknown): value is ProcessIdentity {
  if (typeof value !== 'object' || value === null || !('pid' in value) || !('startTicks' in value)) return false
  return Number.isSafeInteger(value.pid) && Number(value.pid) > 1 && typeof value.startTicks === 'string'
}
