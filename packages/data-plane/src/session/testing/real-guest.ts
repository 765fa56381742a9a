import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type NodeCommand, nodeCommand, type NodeCommandSpec } from '@airlock/contract'
import { FrameDecoder, type GuestBoot, type GuestGroups, STREAM } from '@airlock/contract/guest'
import { createLog, newId, systemClock, waitFor } from '@airlock/std'
import { inject } from 'vitest'
import { GuestLink, type GuestLinkOptions } from '../guest-link.ts'
import { UnixListener } from '../unix-listener.ts'
import { openVault } from './open-vault.ts'
import type { Vault } from '../../vault/vault.ts'

const GUEST_PROGRAM = new URL('../../../../guest/src/main.ts', import.meta.url).pathname
/** As `npm run build` made them. */
const KERNELS = new URL('../../../../guest/dist/kernels', import.meta.url).pathname
const USER = { uid: 1000, gid: 1000 }
const ENV = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/home/user', LANG: 'C.UTF-8' }

/** A guest as a real process of this host and a link to it; only its walls are missing. */
export class RealGuest {
  /** A directory that user code owns. */
  readonly work: string
  link: GuestLink
  readonly overdue: string[] = []
  /** Warnings and errors of its links. */
  readonly logged: string[] = []
  readonly vault: Vault
  readonly #root: string
  readonly #process: ChildProcess

  private constructor(root: string, guest: ChildProcess, vault: Vault) {
    this.#root = root
    this.#process = guest
    this.vault = vault
    this.work = join(root, 'work')
    this.link = this.newLink()
  }

  static async start(groups?: GuestGroups): Promise<RealGuest> {
    const root = await mkdtemp(join(tmpdir(), 'airlock-guest-'))
    await chmod(root, 0o711)
    for (const name of ['work', 'groups']) await mkdir(join(root, name))
    await chown(join(root, 'work'), USER.uid, USER.gid)
    await cp(KERNELS, join(root, 'kernels'), { recursive: true })
    const plain = { join: [], commands: join(root, 'groups'), joinFile: 'tasks', kill: 'pids.max' } as const
    const boot: GuestBoot = {
      socket: join(root, 'control', 'guest.sock'),
      user: USER,
      env: ENV,
      groups: groups ?? plain,
      kernels: join(root, 'kernels'),
      steps: join(root, 'steps'),
    }
    const child = spawn(inject('nodeForAll'), [GUEST_PROGRAM, JSON.stringify(boot)], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const guest = new RealGuest(root, child, await openVault(join(root, 'vault')))
    await guest.link.listen()
    await guest.link.waitForGuest(AbortSignal.timeout(100_000))
    return guest
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  get spoolDir(): string {
    return join(this.#root, 'spool')
  }

  newLink(options: Partial<GuestLinkOptions> = {}): GuestLink {
    return new GuestLink({
      sandbox: 'sbx_test',
      listener: new UnixListener(join(this.#root, 'control')),
      spoolDir: this.spoolDir,
      vault: this.vault.of('acme'),
      clock: systemClock,
      log: createLog({ process: 'test', level: 'warn', write: (line) => void this.logged.push(line) }),
      failpoint: async () => {},
      onOverdue: (id) => this.overdue.push(id),
      usageOf: async () => null,
      strainOf: async () => null,
      isDiskFull: async () => false,
      ...options,
    })
  }

  /** As after kill -9 of the host process: everything in memory is gone. */
  async restartLink(): Promise<void> {
    await this.link.close()
    this.link = this.newLink()
    await this.link.listen()
  }

  /** The guest stands still, and the user code that it started goes on. Precondition of `wake`. */
  suspend(): void {
    this.#process.kill('SIGSTOP')
  }

  wake(): void {
    this.#process.kill('SIGCONT')
  }

  async killGuest(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exit = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exit
  }

  async stop(): Promise<void> {
    await this.link.close()
    this.vault.close()
    await this.killGuest()
    await rm(this.#root, { recursive: true, force: true })
  }

  spec(argv: readonly string[], options: Partial<NodeCommandSpec> = {}): NodeCommandSpec {
    return {
      id: newId('cmd'),
      argv: [...argv],
      cwd: this.work,
      env: {},
      stdin: 'none',
      timeoutMs: 100_000,
      maxOutputBytes: 2 * 1024 * 1024,
      ...options,
    }
  }

  /** A shell command that runs `first`, and then `rest` once it is released, or once the guest is stopped. */
  hold(first: string, rest: string): { readonly argv: readonly string[]; readonly release: () => Promise<void> } {
    const name = newId('req')
    const line = `touch ${name}; ${first}; while [ -e ${name} ]; do sleep 0.05; done; ${rest}`
    return {
      argv: ['/bin/sh', '-c', line],
      // The shell may not have made it yet: then it would wait for ever.
      release: async () => {
        const file = join(this.work, name)
        await waitFor(() => (existsSync(file) ? true : undefined), {
          signal: AbortSignal.timeout(100_000),
          everyMs: 10,
        })
        await rm(file)
      },
    }
  }

  async start(argv: readonly string[], options: Partial<NodeCommandSpec> = {}): Promise<string> {
    return (await this.link.commands.run(this.spec(argv, options))).id
  }

  async run(argv: readonly string[], options: Partial<NodeCommandSpec> = {}): Promise<FinishedCommand> {
    return await this.finish(await this.start(argv, options))
  }

  async sh(line: string, options: Partial<NodeCommandSpec> = {}): Promise<FinishedCommand> {
    return await this.run(['/bin/sh', '-c', line], options)
  }

  async finish(id: string): Promise<FinishedCommand> {
    return await collect(this.link.commands.output(id, { from: 0 }))
  }
}

export interface FinishedCommand {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly command: NodeCommand
  readonly firstOffset: number | undefined
}

export async function collect(frames: AsyncIterable<Buffer>): Promise<FinishedCommand> {
  const decoder = new FrameDecoder()
  const outputs: { readonly stream: number; readonly bytes: Buffer; readonly offset: number }[] = []
  let command: NodeCommand | undefined
  for await (const chunk of frames)
    for (const frame of decoder.push(chunk))
      if (frame.kind === 'data') outputs.push(frame)
      else command = nodeCommand.parse(frame.json)
  const of = (stream: number) =>
    Buffer.concat(outputs.filter((item) => item.stream === stream).map(({ bytes }) => bytes))
  if (!command) throw new TypeError('the output ended without its command')
  return { stdout: of(STREAM.stdout), stderr: of(STREAM.stderr), command, firstOffset: outputs[0]?.offset }
}
