import { createHash } from 'node:crypto'
import { PROCESSES, type ProcessName } from '@airlock/contract'
import { Airlock, outputBytes, type CommandEvent, type RunningCommand, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { startServer, type TestServer } from '../support/server.ts'

const MB = 1024 * 1024
const PRINTED = 50 * MB
/** Where a process is killed, in bytes that the client has. */
const KILLS = [5 * MB, 20 * MB]
/** What the other client reads before it hangs up. */
const SITTING = 8 * MB
const CHUNK = 64 * 1024

/** Prints noise, the last tenth of it not before it may; says its own SHA-256 on stderr; ends as no other command does. */
const PRINTER = `
import hashlib, os, random, sys, time
noise, digest = random.Random(7), hashlib.sha256()
for count in range(${PRINTED / CHUNK}):
    while count == ${(PRINTED / CHUNK) * 0.9} and not os.path.exists('/workspace/go'):
        time.sleep(0.05)
    chunk = noise.randbytes(${CHUNK})
    digest.update(chunk)
    sys.stdout.buffer.write(chunk)
    sys.stdout.flush()
    time.sleep(0.005)
sys.stderr.write(digest.hexdigest())
sys.exit(7)
`
const OPTIONS = { maxOutputBytes: 64 * MB, timeoutMs: 540_000 }

describe('50 MB of output', () => {
  // The doors take no part in it: that sandboxes do not notice their death is shown where they are.
  it.each(PROCESSES.filter((name) => name !== 'doors'))(
    'arrive whole when the %s is killed twice meanwhile',
    async (victim) => {
      const server = new KilledServer(await startServer())
      try {
        const sandbox = await server.client().sandboxes.create()
        const received = new Received()
        const kills = [...KILLS]
        for await (const event of sandbox.stream(['python3', '-c', PRINTER], OPTIONS)) {
          received.take(event)
          if (received.bytes < (kills[0] ?? Infinity)) continue
          kills.shift()
          await server.kill(victim)
          if (kills.length === 0) void server.letGo(sandbox)
        }
        expect(received.summary()).toEqual(WHOLE)
        expect(received.started).toBe(1)
        expect(kills).toEqual([])
      } finally {
        await server.stop()
      }
    },
  )

  it('arrive whole at a client that hangs up again and again, and comes back by offset', async () => {
    const server = new KilledServer(await startServer())
    try {
      const sandbox = await server.client().sandboxes.create()
      const command = await sandbox.start(['python3', '-c', PRINTER], OPTIONS)
      const received = new Received()
      let sittings = 0
      for (; !received.isOver; sittings++) {
        await sit(command, received)
        if (sittings !== 1) continue
        await server.kill('data-plane')
        void server.letGo(sandbox)
      }
      expect(sittings).toBeGreaterThan(5)
      expect(received.summary()).toEqual(WHOLE)
      await expectRoute(server.running, command, received)
    } finally {
      await server.stop()
    }
  })
})

const WHOLE = { stdout: PRINTED, stderr: 64, exitCode: 7, truncated: false, isTheSame: true }

/** What one client got over all its connections. */
class Received {
  readonly #hash = createHash('sha256')
  readonly #counts = { stdout: 0, stderr: 0 }
  #end: Extract<CommandEvent, { event: 'ended' }>['command'] | undefined
  started = 0
  /** Its SHA-256 as the command computed it. */
  told = ''

  get bytes(): number {
    return this.#counts.stdout + this.#counts.stderr
  }

  get isOver(): boolean {
    return this.#end !== undefined
  }

  take(event: CommandEvent): void {
    if (event.event === 'started') this.started++
    else if (event.event === 'ended') this.#end = event.command
    else if (event.event === 'output') this.#output(event)
  }

  summary(): unknown {
    const { exitCode, truncated } = this.#end ?? {}
    return { ...this.#counts, exitCode, truncated, isTheSame: this.#hash.digest('hex') === this.told }
  }

  #output(event: Extract<CommandEvent, { event: 'output' }>): void {
    const bytes = outputBytes(event)
    this.#counts[event.stream] += bytes.length
    expect(event.offset).toBe(this.bytes)
    if (event.stream === 'stdout') this.#hash.update(bytes)
    else this.told += Buffer.from(bytes).toString()
  }
}

/** One connection: reads on from where the last one stopped, and leaves in the middle. */
async function sit(command: RunningCommand, received: Received): Promise<void> {
  const until = received.bytes + SITTING
  for await (const event of command.events({ from: received.bytes })) {
    received.take(event)
    if (received.bytes >= until) return
  }
}

/** The same by plain HTTP: as JSON by `from`, and as events by `Last-Event-ID`, which wins. */
async function expectRoute(server: TestServer, command: RunningCommand, received: Received): Promise<void> {
  const url = `${server.url}/v1/sandboxes/${command.sandbox}/commands/${command.id}/output`
  const headers = { authorization: `Bearer ${server.developerKey}` }
  const rest = await fetch(`${url}?from=${PRINTED}`, { headers })
  expect(await rest.json()).toMatchObject({ stdout: '', stderr: received.told, exitCode: 7, state: 'exited' })
  const events = await fetch(`${url}?from=0`, {
    headers: { ...headers, accept: 'text/event-stream', 'last-event-id': String(PRINTED + 60) },
  })
  const text = await events.text()
  expect(text).toContain(`id: ${PRINTED + 64}\n`)
  expect(text).toContain(`"text":"${received.told.slice(60)}"`)
}

/** A server whose processes are killed while it works: the supervisor restarts them, and we restart the supervisor. */
class KilledServer {
  #running: TestServer
  #back: Promise<void> = Promise.resolve()

  constructor(server: TestServer) {
    this.#running = server
  }

  get running(): TestServer {
    return this.#running
  }

  client(): Airlock {
    return new Airlock({ url: this.#running.url, apiKey: this.#running.developerKey })
  }

  /** As a crash does it. Does not wait until the process is back, for no client could. */
  async kill(victim: ProcessName): Promise<void> {
    await this.#back
    const { home, url } = this.#running
    if (victim === 'supervisor') {
      await this.#running.kill9()
      this.#back = startServer({ home, env: { AIRLOCK_PORT: new URL(url).port } }).then((server) => {
        this.#running = server
      })
      return
    }
    const killed = pidOf(home, victim)
    if (killed === undefined) throw new TypeError(`there is no ${victim}`)
    process.kill(killed, 'SIGKILL')
    const other = (): number | undefined => (pidOf(home, victim) === killed ? undefined : pidOf(home, victim))
    this.#back = waitFor(other, { signal: deadline(60_000), everyMs: 50 }).then(() => undefined)
  }

  /** Lets the command print the rest, once everything is back. */
  async letGo(sandbox: Sandbox): Promise<void> {
    await this.#back
    const write = async (): Promise<unknown> => sandbox.files.write('go', '').catch(() => undefined)
    await waitFor(write, { signal: deadline(60_000), everyMs: 200 })
  }

  async stop(): Promise<void> {
    await this.#back
    await this.#running.stop('SIGINT')
  }
}
