import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { GuestBoot, GuestCommandState, GuestRequest, HostMessage } from '@airlock/contract/guest'
import { AwakeClock } from './awake-clock.ts'
import { DoorToken } from './doors/door-token.ts'
import { Files } from './files/files.ts'
import { KERNELS } from './kernels/kernels.ts'
import type { DataFrame, Outbox } from './outbox.ts'
import { Commands } from './process/commands.ts'
import { Launcher } from './process/launch.ts'
import { UserPrograms } from './process/user-programs.ts'
import { Sessions } from './session/sessions.ts'
import { GuestFailure } from './failure.ts'
import type { Attachment, HostEvents } from './transport/host-connection.ts'

/** What the host may ask of this sandbox, sent to the part that does it. */
export class Guest implements HostEvents {
  readonly #commands: Commands
  readonly #sessions: Sessions
  readonly #files: Files
  readonly #fifoDir: string
  readonly #token: DoorToken | undefined
  readonly #clock = new AwakeClock()

  constructor(boot: GuestBoot, outbox: Outbox) {
    // The control directory is a read-only mount inside our private one.
    this.#fifoDir = join(dirname(dirname(boot.socket)), 'fifos')
    const launcher = new Launcher(boot)
    const clock = this.#clock
    this.#commands = new Commands({ boot, outbox, launcher, clock, fifoDir: this.#fifoDir })
    this.#sessions = new Sessions({ boot, outbox, launcher, clock, kernels: KERNELS })
    this.#token = boot.doors === undefined ? undefined : new DoorToken(boot.doors, boot.user)
    const programs = new UserPrograms(launcher)
    this.#files = new Files({ user: boot.user, outbox, runAsUser: (argv) => programs.run(argv) })
  }

  prepare(): void {
    mkdirSync(this.#fifoDir, { recursive: true, mode: 0o700 })
    this.#commands.prepare()
  }

  states(): readonly GuestCommandState[] {
    return [...this.#commands.states(), ...this.#sessions.states()]
  }

  attached(received: Attachment): void {
    this.#clock.attached()
    this.#commands.attached(received)
    this.#sessions.attached(received)
  }

  detached(): void {
    this.#clock.detached()
    this.#files.detached()
  }

  async request(request: GuestRequest): Promise<unknown> {
    if (request.op === 'ping') return {}
    if (request.op === 'token') return this.#takeToken(request)
    if (request.op === 'run') return await this.#commands.run(request.command)
    if (request.op === 'signal') return await this.#runner(request.channel).signal(request.channel, request.signal)
    if (request.op === 'forget') return this.#runner(request.channel).forget(request.channel)
    if (request.op === 'step') return await this.#sessions.step(request.step)
    if (isSessionRequest(request)) return await this.#requestSession(request)
    return await this.#files.request(request)
  }

  data(frame: DataFrame): void {
    if (this.#commands.has(frame.channel)) this.#commands.input(frame)
    else this.#files.data(frame)
  }

  slept(totalMs: number): void {
    this.#clock.slept(totalMs)
  }

  notice(message: Exclude<HostMessage, { type: 'attach' | 'request' | 'slept' }>): void {
    if (this.#commands.has(message.channel)) this.#commands.notice(message)
    else if (!this.#sessions.has(message.channel)) this.#files.notice(message)
    else if (message.type === 'ack') this.#sessions.acknowledge(message.channel, message.offset)
  }

  #takeToken(given: Extract<GuestRequest, { op: 'token' }>): Record<string, never> {
    if (!this.#token) throw new GuestFailure('invalid_request', 'the sandbox has no door')
    return this.#token.take(given)
  }

  #runner(channel: number): Commands | Sessions {
    return this.#sessions.has(channel) ? this.#sessions : this.#commands
  }

  async #requestSession(request: SessionRequest): Promise<unknown> {
    if (request.op === 'session.open') return await this.#sessions.open(request.session)
    if (request.op === 'session.list') return this.#sessions.list()
    if (request.op === 'session.interrupt') return await this.#sessions.interrupt(request.session)
    if (request.op === 'session.restart') return await this.#sessions.restart(request.session)
    return await this.#sessions.close(request.session)
  }
}

type SessionRequest = Extract<GuestRequest, { op: `session.${string}` }>

function isSessionRequest(request: GuestRequest): request is SessionRequest {
  return request.op.startsWith('session.')
}
