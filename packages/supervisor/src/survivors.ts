import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { deadline, waitFor } from '@airlock/std'

/** A process beyond doubt: pids are used again, a pid with its start time is not. */
interface Identity {
  readonly pid: number
  readonly startTicks: string
}

const LEAVE_MS = 1_000
const DIE_MS = 5_000

/** Which processes we run, on disk, so that the next supervisor finds them if we are killed. */
export class ProcessList {
  readonly #path: string
  readonly #entries = new Map<string, Identity>()

  constructor(path: string) {
    this.#path = path
  }

  set(name: string, pid: number | undefined): void {
    const startTicks = pid === undefined ? undefined : startTicksOf(pid)
    if (pid === undefined || startTicks === undefined) this.#entries.delete(name)
    else this.#entries.set(name, { pid, startTicks })
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

async function endSurvivor(survivor: Identity): Promise<void> {
  const left = await goneWithin(survivor, LEAVE_MS)
  if (left || !lives(survivor)) return
  process.kill(survivor.pid, 'SIGKILL')
  await goneWithin(survivor, DIE_MS)
}

async function goneWithin(identity: Identity, ms: number): Promise<boolean> {
  const gone = () => (lives(identity) ? undefined : true)
  return waitFor(gone, { signal: deadline(ms), everyMs: 20 }).catch(() => false)
}

function lives({ pid, startTicks }: Identity): boolean {
  return pid > 1 && startTicksOf(pid) === startTicks
}

/** Undefined when there is no such process, or only its exit status is left of it. */
function startTicksOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    // No such process.
    return undefined
  }
}

function readIdentities(path: string): readonly Identity[] {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return Array.isArray(value) ? value.filter(isIdentity) : []
  } catch {
    // The first start, or a list torn by a crash of the host, after which none of them lives.
    return []
  }
}

function isIdentity(value: unknown): value is Identity {
  if (typeof value !== 'object' || value === null || !('pid' in value) || !('startTicks' in value)) return false
  return Number.isSafeInteger(value.pid) && typeof value.startTicks === 'string'
}
