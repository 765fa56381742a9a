import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { GuestBoot, GuestCommandState, GuestRequest, HostMessage } from '@airlock/contract/guest'
import { Files } from './files/files.ts'
import type { DataFrame, Outbox } from './outbox.ts'
import { Commands } from './process/commands.ts'
import { Launcher } from './process/launch.ts'
import { UserPrograms } from './process/user-programs.ts'
import type { Attachment, HostEvents } from './transport/host-connection.ts'

/** What the host may ask of this sandbox, sent to the part that does it. */
export class Guest implements HostEvents {
  readonly #commands: Commands
  readonly #files: Files
  readonly #fifoDir: string

  constructor(boot: GuestBoot, outbox: Outbox) {
    // The control directory is a read-only mount inside our private one.
    this.#fifoDir = join(dirname(dirname(boot.socket)), 'fifos')
    const launcher = new Launcher(boot)
    this.#commands = new Commands({ boot, outbox, launcher, fifoDir: this.#fifoDir })
    const programs = new UserPrograms(launcher)
    this.#files = new Files({ user: boot.user, outbox, runAsUser: (argv) => programs.run(argv) })
  }

  prepare(): void {
    mkdirSync(this.#fifoDir, { recursive: true, mode: 0o700 })
    this.#commands.prepare()
  }

  states(): readonly GuestCommandState[] {
    return this.#commands.states()
  }

  attached(received: Attachment): void {
    this.#commands.attached(received)
  }

  detached(): void {
    this.#files.detached()
  }

  async request(request: GuestRequest): Promise<unknown> {
    if (request.op === 'ping') return {}
    if (request.op === 'run') return await this.#commands.run(request.command)
    if (request.op === 'signal') return await this.#commands.signal(request.channel, request.signal)
    if (request.op === 'forget') return this.#commands.forget(request.channel)
    return await this.#files.request(request)
  }

  data(frame: DataFrame): void {
    if (this.#commands.has(frame.channel)) this.#commands.input(frame)
    else this.#files.data(frame)
  }

  notice(message: Exclude<HostMessage, { type: 'attach' | 'request' }>): void {
    if (this.#commands.has(message.channel)) this.#commands.notice(message)
    else this.#files.notice(message)
  }
}
