import { once } from 'node:events'
import { GuestFailure } from '../failure.ts'
import type { Launcher } from './launch.ts'

const LIMIT_MS = 5 * 60_000
const STDERR_LENGTH = 4096
const AT_ONCE = 8

/** Does file work that may take long in a process of user code's rights and limits. Throws what the program said. */
export class UserPrograms {
  readonly #launcher: Launcher
  #started = 0
  #running = 0

  constructor(launcher: Launcher) {
    this.#launcher = launcher
  }

  async run(argv: readonly string[]): Promise<void> {
    if (this.#running >= AT_ONCE) throw new GuestFailure('too_many_commands', 'too many file operations at once')
    const group = `files_${this.#started++}`
    this.#launcher.groups.make(group)
    this.#running++
    try {
      await this.#runIn(group, argv)
    } finally {
      this.#running--
      this.#launcher.groups.release(group)
    }
  }

  async #runIn(group: string, argv: readonly string[]): Promise<void> {
    const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C' }
    const called = [...programOf(this.#launcher, argv[0]), ...argv.slice(1)]
    const child = this.#launcher.launch({ group, argv: called, cwd: '/', env, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(0, STDERR_LENGTH)))
    const kill = () => {
      // What will not die keeps its group; the host ends it with the sandbox.
      if (child.pid !== undefined) void this.#launcher.groups.kill(group, child.pid).catch(() => undefined)
    }
    const limit = setTimeout(kill, LIMIT_MS)
    const [code] = await once(child, 'close')
    clearTimeout(limit)
    if (code !== 0) throw explain(said)
  }
}

/** Those of ours may be where no path leads. */
function programOf({ programs }: Launcher, name = ''): readonly string[] {
  return name === 'mv' || name === 'rm' ? programs[name] : [name]
}

function explain(said: string): GuestFailure {
  const message = said.trim() || 'the operation was cut off'
  if (/No space left|Disk quota exceeded/.test(said)) return new GuestFailure('disk_full', message)
  if (/Permission denied|not permitted|busy|Read-only/.test(said)) return new GuestFailure('permission_denied', message)
  if (/Directory not empty|File exists/.test(said)) return new GuestFailure('directory_not_empty', message)
  if (/No such file/.test(said)) return new GuestFailure('file_not_found', message)
  return new GuestFailure('internal', message)
}
