import { readdirSync, readFileSync, statSync } from 'node:fs'
import { type LaunchGroups, signalProcess } from './groups.ts'

const KILL_ROUNDS = 400
const KILL_PAUSE_MS = 5

interface Process {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
}

/**
 * Groups where there is no cgroup: a process belongs to the leader whose process session, process group or descendant
 * it is. That is weaker: what forks twice and leaves its session is nobody's. Such strays end with the sandbox; in a pod,
 * with everything else of that uid when the last group is released, so the uid must be used for nothing else.
 */
export class ProcessSessions implements LaunchGroups {
  readonly #uid: number
  readonly #endsStrays: boolean
  readonly #leaders = new Map<string, number>()

  constructor(uid: number, { endsStrays }: { readonly endsStrays: boolean }) {
    this.#uid = uid
    this.#endsStrays = endsStrays
  }

  make(name: string): void {
    this.#leaders.set(name, 0)
  }

  /** There is nothing to enter. */
  joinFile(): string {
    return '/dev/null'
  }

  async kill(name: string, leader: number): Promise<void> {
    this.#leaders.set(name, leader)
    await endAll(() => this.#members(leader))
  }

  async reset(name: string): Promise<boolean> {
    const leader = this.#leaders.get(name) ?? 0
    await endAll(() => this.#members(leader))
    return this.#members(leader).length === 0
  }

  /** Nobody counts them here. */
  refusedForks(): number {
    return 0
  }

  release(name: string): void {
    this.#leaders.delete(name)
    if (!this.#endsStrays) return
    // What will not die keeps its pid; the pod ends it.
    void endAll(() => (this.#leaders.size === 0 ? this.#all().map(({ pid }) => pid) : []))
  }

  #members(leader: number): readonly number[] {
    if (leader <= 1) return []
    const all = this.#all()
    const found = new Set([leader])
    for (let before = 0; before < found.size;) {
      before = found.size
      for (const { pid, parent, group, session } of all)
        if (found.has(parent) || group === leader || session === leader) found.add(pid)
    }
    return all.filter(({ pid }) => found.has(pid)).map(({ pid }) => pid)
  }

  /** Every process of user code. */
  #all(): readonly Process[] {
    const pids = readdirSync('/proc').filter((name) => /^[1-9]\d*$/.test(name) && name !== '1')
    return pids.flatMap((pid) => this.#look(pid) ?? [])
  }

  #look(pid: string): Process | undefined {
    try {
      if (statSync(`/proc/${pid}`).uid !== this.#uid) return undefined
      // The name before may contain anything.
      const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const [state, parent, group, session] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      // One that is dead waits for its parent, not for us.
      if (state === 'Z' || state === 'X') return undefined
      return { pid: Number(pid), parent: Number(parent), group: Number(group), session: Number(session) }
    } catch {
      // It has gone meanwhile.
      return undefined
    }
  }
}

async function endAll(find: () => readonly number[]): Promise<void> {
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const pids = find()
    if (pids.length === 0) return
    for (const pid of pids) signalProcess(pid, 'SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, KILL_PAUSE_MS))
  }
}
