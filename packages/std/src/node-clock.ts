import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from './clock.ts'

const FILE = 'clock.json'
const EVERY_MS = 1000
/** How much faster or slower than time itself the clock of a node runs to meet the clock on the wall. */
const SLEW = 1 / 20
/** What the two ways of asking the kernel differ by when the host was never suspended. */
const COARSE_MS = 1000
/** Worth telling whoever runs the node. */
const FAR_MS = 60_000

/** Which boot of the host it is about, and when that was by the clock of the node, in ms since the epoch. */
interface Anchor {
  readonly bootId: string
  readonly bootedAt: number
}

/** What a host tells of time. Injected, so that tests can own it. */
export interface HostTime {
  readonly bootId: string
  /** The clock on the wall, which anybody may set. */
  wall(): number
  /** Ms since the host was booted, suspended or not: nobody can set it. */
  sinceBoot(): number
}

/**
 * The clock of a node: every process of one server reads the same, over restarts. It runs with the time since the host was
 * booted, so a jump of the clock on the wall moves no deadline; `ClockKeeper` lets it meet the wall slowly. It never goes back.
 */
export class NodeClock implements Clock {
  readonly #host: HostTime
  readonly #path: string
  #bootedAt: number
  #readAt: number
  #last = 0

  constructor(dir: string, host: HostTime = new Host()) {
    this.#host = host
    this.#path = join(dir, FILE)
    this.#readAt = host.sinceBoot()
    this.#bootedAt = this.#read() ?? host.wall() - this.#readAt
  }

  now(): number {
    const sinceBoot = this.#host.sinceBoot()
    if (sinceBoot - this.#readAt >= EVERY_MS) {
      this.#readAt = sinceBoot
      this.#follow()
    }
    this.#last = Math.max(this.#last, Math.round(this.#bootedAt + sinceBoot))
    return this.#last
  }

  /** An unreadable file is read again in a second; until then the clock runs as it did. */
  #follow(): void {
    this.#bootedAt = this.#read() ?? this.#bootedAt
  }

  /** `ClockKeeper` reports a damaged file; other processes go on without it. */
  #read(): number | undefined {
    return readAnchor(this.#path, this.#host.bootId, () => undefined)
  }
}

export interface ClockKeeperOptions {
  /** Where `NodeClock` finds it. */
  readonly dir: string
  /** Nothing that lives has a deadline: the wall may be believed at once. */
  readonly isIdle: boolean
  /** The wall is this far ahead, all of a sudden. */
  readonly onJump: (ms: number) => void
  /** It cannot be written: the processes go on with what they know, and it is tried again. Said once until it works. */
  readonly onFailure: (error: unknown) => void
  /** The file cannot be read: deadlines go by the clock on the wall from now on. */
  readonly onDamage: (error: unknown) => void
  readonly host?: HostTime
}

/** Decides what the clock of this node says. One for a server, in the process that starts all others. */
export class ClockKeeper {
  readonly #path: string
  readonly #host: HostTime
  readonly #options: ClockKeeperOptions
  #bootedAt: number
  #isFar = false
  #isFailing = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: ClockKeeperOptions) {
    const { dir, isIdle, onDamage, host = new Host() } = options
    this.#options = options
    this.#path = join(dir, FILE)
    this.#host = host
    const kept = isIdle ? undefined : readAnchor(this.#path, host.bootId, onDamage)
    this.#bootedAt = kept ?? host.wall() - host.sinceBoot()
    if (kept === undefined) this.#write(this.#bootedAt)
  }

  /** How far the clock on the wall is ahead. */
  get behindMs(): number {
    return this.#host.wall() - this.#host.sinceBoot() - this.#bootedAt
  }

  start(): void {
    this.#timer = setInterval(() => this.slew(EVERY_MS), EVERY_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Takes a step towards the wall after so much time. */
  slew(elapsedMs: number): void {
    const isFar = Math.abs(this.behindMs) >= FAR_MS
    if (isFar && !this.#isFar) this.#options.onJump(this.behindMs)
    this.#isFar = isFar
    const most = elapsedMs * SLEW
    const step = Math.round(Math.min(most, Math.max(-most, this.behindMs)))
    if (step === 0) return
    if (this.#write(this.#bootedAt + step)) this.#bootedAt += step
  }

  /** Not synced: a loss of power begins another boot, in which the file is ignored. */
  #write(bootedAt: number): boolean {
    const anchor: Anchor = { bootId: this.#host.bootId, bootedAt }
    try {
      writeFileSync(`${this.#path}.new`, JSON.stringify(anchor))
      // Processes that gave up root read it too, whatever the umask.
      chmodSync(`${this.#path}.new`, 0o644)
      renameSync(`${this.#path}.new`, this.#path)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#options.onFailure(error)
      this.#isFailing = true
    }
    return !this.#isFailing
  }
}

/** Undefined when there is no file, it is about another boot, or it is damaged. */
function readAnchor(path: string, bootId: string, onDamage: (error: unknown) => void): number | undefined {
  try {
    const anchor = parseAnchor(readFileSync(path, 'utf8'))
    return anchor.bootId === bootId ? anchor.bootedAt : undefined
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) onDamage(error)
    return undefined
  }
}

function parseAnchor(text: string): Anchor {
  const value: unknown = JSON.parse(text)
  if (typeof value === 'object' && value !== null && 'bootId' in value && 'bootedAt' in value) {
    const { bootId, bootedAt } = value
    if (typeof bootId === 'string' && typeof bootedAt === 'number') return { bootId, bootedAt }
  }
  throw new TypeError('it is no clock')
}

/**
 * This host. The kernel's clock that counts suspended time too can be read only coarsely here, so it is asked once a second how long
 * the host was suspended, and the fine clock, which stands still meanwhile, for the rest.
 */
class Host implements HostTime {
  readonly bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  #suspendedMs = 0
  #askedAt = -Infinity

  wall(): number {
    return systemClock.now()
  }

  sinceBoot(): number {
    const awakeMs = Number(process.hrtime.bigint() / 1000n) / 1000
    if (awakeMs - this.#askedAt >= EVERY_MS) {
      this.#askedAt = awakeMs
      const suspendedMs = uptime() * 1000 - awakeMs
      if (Math.abs(suspendedMs - this.#suspendedMs) > COARSE_MS) this.#suspendedMs = Math.max(0, suspendedMs)
    }
    return awakeMs + this.#suspendedMs
  }
}
