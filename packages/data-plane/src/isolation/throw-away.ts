import { AirlockError, DEFAULTS, guestMessage, type EffectiveIsolation } from '@airlock/contract'
import { encodeMessage, FrameDecoder, type HostMessage } from '@airlock/contract/guest'
import { newId } from '@airlock/std'
import { once } from 'node:events'
import { chmod, mkdir, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { addAbortSignal } from 'node:stream'
import type { IsolationBackend, SandboxSpec } from './backend.ts'

export interface ThrowAway extends Pick<SandboxSpec, 'tier' | 'image'> {
  /** Where the directory with its socket is made and removed. */
  readonly dir: string
  /** Run one after another, as user code. */
  readonly commands: readonly (readonly string[])[]
  readonly signal: AbortSignal
}

export interface ThrownAway {
  readonly isolation: EffectiveIsolation
  readonly startMs: number
  /** Of each command. */
  readonly ran: readonly Ran[]
}

export interface Ran {
  readonly exitCode: number | null
  /** Of both streams. */
  readonly output: Buffer
}

const COMMAND_MS = 20_000
const OUTPUT_BYTES = 64 * 1024

/** Starts a sandbox that nobody asked for, runs some commands in it and ends it. Throws what went wrong; leaves nothing. */
export async function runThrowAway(backend: IsolationBackend, run: ThrowAway): Promise<ThrownAway> {
  const { tier, image, signal } = run
  const id = newId('sbx')
  const controlDir = join(run.dir, id)
  const server = createServer()
  try {
    await mkdir(controlDir, { recursive: true, mode: 0o711 })
    await new Promise<void>((resolve) => server.listen(join(controlDir, 'guest.sock'), resolve))
    await chmod(join(controlDir, 'guest.sock'), 0o666)
    const before = performance.now()
    const guest = once(server, 'connection', { signal })
    // A start that fails is told by itself.
    guest.catch(() => undefined)
    const spec = { id, limits: LIMITS, image, tier, controlDir, mounts: [], doors: [], isThrowAway: true } as const
    const { isolation } = await backend.start(spec, signal)
    const socket: Socket = (await guest)[0]
    const startMs = Math.round(performance.now() - before)
    return { isolation, startMs, ran: await runAll(socket, run) }
  } finally {
    await backend.stop(id)
    server.close()
    await rm(controlDir, { recursive: true, force: true })
  }
}

const LIMITS = {
  memoryBytes: DEFAULTS.memoryBytes.min,
  cpus: DEFAULTS.cpus.default,
  pids: DEFAULTS.pids.min,
  diskBytes: DEFAULTS.diskBytes.min,
  inodes: DEFAULTS.inodes.min,
  openFiles: DEFAULTS.openFiles.min,
  cpuSeconds: null,
} as const

async function runAll(socket: Socket, { commands, signal }: ThrowAway): Promise<readonly Ran[]> {
  const send = (message: HostMessage) => socket.write(encodeMessage(message))
  const frames = framesOf(addAbortSignal(signal, socket))
  try {
    send({ type: 'attach', received: [] })
    const ran: Ran[] = []
    for (const [at, argv] of commands.entries()) {
      const place = { id: newId('cmd'), channel: at + 1, cwd: '/workspace', env: {} }
      const limits = { stdin: 'none', timeoutMs: COMMAND_MS, maxOutputBytes: OUTPUT_BYTES } as const
      send({ type: 'request', id: at + 1, request: { op: 'run', command: { ...place, argv, ...limits } } })
      ran.push(await endOf(frames))
    }
    return ran
  } finally {
    socket.destroy()
  }
}

type Frames = AsyncGenerator<ReturnType<FrameDecoder['push']> extends Iterable<infer One> ? One : never, void>

async function* framesOf(chunks: AsyncIterable<Buffer>): Frames {
  const decoder = new FrameDecoder()
  for await (const chunk of chunks) yield* decoder.push(chunk)
}

async function endOf(frames: Frames): Promise<Ran> {
  const output: Buffer[] = []
  let exitCode: number | null = null
  for (let next = await frames.next(); next.done !== true; next = await frames.next()) {
    const frame = next.value
    if (frame.kind === 'data') output.push(Buffer.from(frame.bytes))
    const message = frame.kind === 'message' ? guestMessage.parse(frame.json) : undefined
    if (message?.type === 'failure') throw new AirlockError('start_failed', message.error.message)
    if (message?.type === 'exited') exitCode = message.end.exitCode
    if (message?.type === 'closed') return { exitCode, output: Buffer.concat(output) }
  }
  throw new AirlockError('start_failed', 'The guest hung up.')
}
