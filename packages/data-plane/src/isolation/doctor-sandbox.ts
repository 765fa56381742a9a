import { AirlockError, DEFAULTS, guestMessage } from '@airlock/contract'
import { encodeMessage, FrameDecoder, type HostMessage } from '@airlock/contract/guest'
import { createLog, newId } from '@airlock/std'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal } from 'node:stream'
import type { SandboxSpec } from './backend.ts'
import { createOciBackend } from './backends/oci/oci-backend.ts'

export interface SandboxTrial {
  readonly runtime: string
  readonly node: string
  readonly guestBundle: string
}

const LIMIT_MS = 20_000
const CHANNEL = 1

/**
 * Starts a whole sandbox in a state directory of its own, lets the guest run `true` in it and ends it. Returns what it ran
 * on and how long the start took; throws what went wrong. Leaves nothing behind.
 */
export async function trySandbox(
  trial: SandboxTrial,
  tier: SandboxSpec['tier'] = 'standard',
): Promise<{ readonly runtime: string; readonly startMs: number }> {
  const root = await mkdtemp(join(tmpdir(), 'airlock-doctor-'))
  const controlDir = join(root, 'control')
  const backend = await createOciBackend({
    ...trial,
    stateDir: join(root, 'state'),
    runtimeDir: join(root, 'run'),
    log: createLog({ process: 'doctor', level: 'silent', write: () => {} }),
    failpoint: async () => {},
  }).catch(async (error: unknown) => await rm(root, { recursive: true }).then(() => Promise.reject(error)))
  const id = newId('sbx')
  const server = createServer()
  try {
    await mkdir(controlDir)
    await new Promise<void>((resolve) => server.listen(join(controlDir, 'guest.sock'), resolve))
    await chmod(join(controlDir, 'guest.sock'), 0o666)
    const signal = AbortSignal.timeout(LIMIT_MS)
    const before = performance.now()
    const guest = once(server, 'connection', { signal })
    // A start that fails is told by itself.
    guest.catch(() => undefined)
    const { isolation } = await backend.start(
      { id, limits: LIMITS, image: 'host', tier, controlDir, mounts: [], doors: [] },
      signal,
    )
    const socket: Socket = (await guest)[0]
    const startMs = Math.round(performance.now() - before)
    await runTrue(socket, signal)
    return { runtime: isolation.runtime, startMs }
  } finally {
    await backend.stop(id)
    server.close()
    await rm(root, { recursive: true, force: true })
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

async function runTrue(socket: Socket, signal: AbortSignal): Promise<void> {
  const command = { id: newId('cmd'), channel: CHANNEL, argv: ['true'], cwd: '/workspace', env: {} }
  const limits = { stdin: 'none', timeoutMs: LIMIT_MS, maxOutputBytes: 0 } as const
  const said: readonly HostMessage[] = [
    { type: 'attach', received: [] },
    { type: 'request', id: 1, request: { op: 'run', command: { ...command, ...limits } } },
  ]
  for (const message of said) socket.write(encodeMessage(message))
  try {
    const exitCode = await exitOf(socket, signal)
    if (exitCode !== 0) throw new AirlockError('start_failed', `"true" ended with ${exitCode} in the sandbox.`)
  } finally {
    socket.destroy()
  }
}

async function exitOf(socket: Socket, signal: AbortSignal): Promise<number | null> {
  const decoder = new FrameDecoder()
  const chunks: AsyncIterable<Buffer> = addAbortSignal(signal, socket)
  for await (const chunk of chunks)
    for (const frame of decoder.push(chunk)) {
      const message = frame.kind === 'message' ? guestMessage.parse(frame.json) : undefined
      if (message?.type === 'exited') return message.end.exitCode
      if (message?.type === 'failure') throw new AirlockError('start_failed', message.error.message)
    }
  throw new AirlockError('start_failed', 'The guest hung up.')
}
