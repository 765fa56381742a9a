import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import {
  AirlockError,
  type DataPlaneHealth,
  type EffectiveIsolation,
  FOLLOW_PROTOCOL,
  followedCall,
  freezeRequest,
  type NodeCommand,
  nodeCommandSpec,
  type NodeSample,
  type NodeSandbox,
  type NodeSession,
  nodeSessionSpec,
  nodeStepSpec,
  limits,
  nodeToken,
  type NodeStepSpec,
  toAirlockError,
  verifyPermit,
} from '@airlock/contract'
import { encodeData, encodeMessage, FrameDecoder, STREAM } from '@airlock/contract/guest'

export const ISOLATION: EffectiveIsolation = {
  backend: 'scripted',
  runtime: 'none',
  tier: 'standard',
  namespaces: [],
  network: 'none',
  seccomp: 'allowlist',
  noNewPrivileges: true,
  capabilities: [],
  uidRange: { first: 1, count: 1 },
  cgroup: 'v1',
  limits: [],
  root: 'read-only',
  unmasked: [],
  mountFaults: [],
  probe: { tried: 1, passed: [] },
}

/** A sample of which nothing could be told. */
export const UNTOLD: Omit<NodeSample, 'id' | 'at'> = {
  cpuMs: null,
  throttledMs: null,
  memoryBytes: null,
  swapBytes: null,
  pids: null,
  diskBytes: null,
  inodes: null,
  readBytes: null,
  writtenBytes: null,
  oomKills: null,
  pidsRefused: null,
  ofLimit: { memory: null, pids: null, disk: null, inodes: null },
  pressure: null,
}

interface ScriptedCall {
  readonly sandbox: string
  readonly command: string
  readonly url: URL
  readonly body: Buffer
  readonly response: Reply
}

/** What scripts use of an answer, over HTTP or in frames. */
interface Reply {
  readonly headersSent: boolean
  flushHeaders(): void
  writeHead(status: number, headers?: Readonly<Record<string, string | number>>): Pick<Reply, 'write' | 'end'>
  write(bytes: string | Buffer): unknown
  end(bytes?: string | Buffer): unknown
  destroy(): unknown
}

/** Answers JSON, throws an error, or says `'hang-up'` to die in the middle. */
type Script = (call: ScriptedCall) => unknown

/**
 * Speaks the data plane's table on a real socket, and can be told to answer what a real one cannot be made to: errors,
 * silence, a connection that dies. It isolates nothing and runs nothing.
 */
export class ScriptedDataPlane {
  readonly calls: string[] = []
  readonly sandboxes = new Map<string, NodeSandbox>()
  readonly commands = new Map<string, NodeCommand>()
  readonly sessions = new Map<string, NodeSession>()
  /** The latest token of each sandbox. */
  readonly tokens = new Map<string, string>()
  /** Every step that was given, in order. */
  readonly steps: NodeStepSpec[] = []
  output: { readonly stream: 'stdout' | 'stderr' | 'rich'; readonly bytes: Buffer }[] = []
  bootId = 'boot-1'
  /** Sandboxes that it destroyed at its start because their files were damaged. */
  readonly damaged = new Set<string>()
  /** What running sandboxes have used. */
  readonly cpuMs = new Map<string, number | null>()
  /** Whether it can pause sandboxes. */
  pause = true
  machine = {
    memoryBytes: 2 ** 40,
    cpus: 100,
    disk: { freeBytes: 2 ** 40, takenBytes: 0, reserveBytes: 2 ** 30 },
  }
  readonly #scripts = new Map<string, Script>()
  readonly #waiting = new Set<() => void>()
  readonly #socket: string
  readonly #permitKey: string
  readonly #followed = new Set<Duplex>()
  #server: Server | undefined

  constructor(options: { readonly socket: string; readonly permitKey: string }) {
    this.#socket = options.socket
    this.#permitKey = options.permitKey
  }

  health(): DataPlaneHealth {
    return {
      node: 'here',
      backend: 'scripted',
      bootId: this.bootId,
      capacity: 50,
      pause: this.pause,
      damaged: [...this.damaged],
      ...this.machine,
    }
  }

  async listen(): Promise<void> {
    const server = createServer((request, response) => void this.#answer(request, response))
    server.on('upgrade', (_request, socket) => this.#follow(socket))
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.#socket, resolve))
  }

  /** As if the process had been killed: nobody answers any more. */
  async die(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    this.wake()
    for (const socket of this.#followed) socket.destroy()
    server?.closeAllConnections()
    if (server) await new Promise<void>((resolve) => server.close(() => resolve()))
  }

  /** `route` as in the table, e.g. `DELETE /sandboxes/:id`. Undefined takes the script away. */
  script(route: string, script: Script | undefined): void {
    if (script) this.#scripts.set(route, script)
    else this.#scripts.delete(route)
  }

  endCommand(id: string, end: Partial<NodeCommand>): void {
    const command = this.commands.get(id)
    if (command)
      this.commands.set(id, { ...command, state: 'exited', exitCode: 0, endedAt: command.startedAt + 5, ...end })
    this.wake()
  }

  wake(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://data-plane')
    const [, , sandbox = '', kind, command = '', verb] = url.pathname.split('/')
    const route = [request.method, routeOf({ sandbox, kind, command, verb }, url)].join(' ')
    await this.#play(route, { sandbox, command, url, body: await readAll(request), response })
  }

  /** A followed call is played as the route that it was, with an answer in frames. */
  #follow(socket: Duplex): void {
    this.#followed.add(socket)
    socket.on('close', () => this.#followed.delete(socket))
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${FOLLOW_PROTOCOL}\r\n\r\n`)
    const decoder = new FrameDecoder()
    socket.on('data', (chunk: Buffer) => {
      for (const frame of decoder.push(chunk)) {
        const call = followedCall.parse(frame.kind === 'message' ? frame.json : undefined)
        const url = new URL('http://data-plane/?follow=true')
        const to = { sandbox: call.sandbox, url, response: new FramedReply(socket) }
        if ('step' in call)
          void this.#play('POST /sandboxes/:id/sessions/:cid/steps', {
            ...to,
            command: call.session,
            body: Buffer.from(JSON.stringify(call.step)),
          })
        else
          void this.#play('POST /sandboxes/:id/commands', {
            ...to,
            command: '',
            body: Buffer.from(JSON.stringify(call.command)),
          })
      }
    })
  }

  async #play(route: string, call: ScriptedCall): Promise<void> {
    const { sandbox, response } = call
    this.calls.push(sandbox === '' ? route : route.replace(':id', sandbox))
    try {
      const script = this.#scripts.get(route) ?? this.#plain(route)
      const answer = await script(call)
      if (answer === 'hang-up') response.destroy()
      else if (!response.headersSent) response.end(JSON.stringify(answer))
    } catch (thrown) {
      const { status, code, message } = toAirlockError(thrown)
      if (response.headersSent) response.destroy()
      else response.writeHead(status).end(JSON.stringify({ error: { code, message } }))
    }
  }

  #plain(route: string): Script {
    const table: Record<string, Script> = {
      'GET /health': () => this.health(),
      'GET /metrics': () => ({
        samples: [...this.cpuMs].map(([id, cpuMs]) => ({ ...UNTOLD, id, at: Date.now(), cpuMs })),
        tookMs: 1,
      }),
      'GET /sandboxes': () => ({ sandboxes: [...this.sandboxes.values()] }),
      'POST /sandboxes': (call) => this.#start(call),
      'PUT /sandboxes/:id/token': (call) => this.#takeToken(call),
      'DELETE /sandboxes/:id': (call) => this.#stop(call),
      'POST /sandboxes/:id/limits': (call) => this.#changeLimits(call),
      'POST /sandboxes/:id/pause': ({ sandbox }) => this.#set(sandbox, 'paused'),
      'POST /sandboxes/:id/resume': ({ sandbox }) => this.#set(sandbox, 'running'),
      'POST /freeze': (call) => this.#freeze(call),
      'POST /sandboxes/:id/commands': (call) => this.#run(call),
      'GET /sandboxes/:id/commands/:cid': (call) => this.#command(call),
      'GET /sandboxes/:id/commands/:cid/wait': (call) => this.#wait(call),
      'GET /sandboxes/:id/commands/:cid/output': (call) => this.#output(call),
      'POST /sandboxes/:id/sessions': (call) => this.#openSession(call),
      'POST /sandboxes/:id/sessions/:cid/interrupt': () => ({}),
      'POST /sandboxes/:id/sessions/:cid/restart': (call) => this.#restartSession(call),
      'DELETE /sandboxes/:id/sessions/:cid': ({ command }) => ({ ...(this.sessions.delete(command) && {}) }),
      'POST /sandboxes/:id/sessions/:cid/steps': (call) => this.#step(call),
    }
    return table[route] ?? (() => Promise.reject(new AirlockError('route_not_found', route)))
  }

  #start({ body }: ScriptedCall): unknown {
    const { permit: token } = JSON.parse(body.toString()) as { permit: string }
    const key = createPublicKey(readFileSync(this.#permitKey))
    const { sandbox: id, tenant, agent, limits } = verifyPermit(token, key, Date.now())
    this.sandboxes.set(id, { id, tenant, agent, state: 'running', lostReason: null, runningCommands: 0, limits })
    return { id, image: 'scripted', isolation: ISOLATION }
  }

  #takeToken({ sandbox, body }: ScriptedCall): unknown {
    this.#assertThere(sandbox)
    this.tokens.set(sandbox, nodeToken.parse(JSON.parse(body.toString())).token)
    return {}
  }

  #stop({ sandbox }: ScriptedCall): unknown {
    const existed = this.sandboxes.delete(sandbox)
    this.damaged.delete(sandbox)
    this.wake()
    return { existed, usage: existed ? { cpuMs: 7, memoryPeakBytes: 4096 } : null }
  }

  #changeLimits({ sandbox: id, body }: ScriptedCall): unknown {
    const sandbox = this.sandboxes.get(id)
    if (!sandbox) throw new AirlockError('sandbox_not_found')
    const to = limits.parse(JSON.parse(body.toString()))
    this.sandboxes.set(id, { ...sandbox, limits: to })
    return to
  }

  #set(id: string, state: NodeSandbox['state']): unknown {
    const sandbox = this.sandboxes.get(id)
    if (!sandbox) throw new AirlockError('sandbox_not_found')
    this.sandboxes.set(id, { ...sandbox, state })
    return {}
  }

  #freeze({ body }: ScriptedCall): unknown {
    const scope = freezeRequest.parse(JSON.parse(body.toString()))
    const fits = (wanted: string | null, has: string) => wanted === null || wanted === has
    const frozen = [...this.sandboxes.values()].filter(
      ({ id, tenant, agent }) => fits(scope.tenant, tenant) && fits(scope.agent, agent) && fits(scope.sandbox, id),
    )
    return { sandboxes: frozen.map(({ id }) => ({ id, frozenMs: 1, processes: 3 })) }
  }

  #openSession({ sandbox, body }: ScriptedCall): NodeSession {
    this.#assertThere(sandbox)
    const { id, runtime } = nodeSessionSpec.parse(JSON.parse(body.toString()))
    const session = { id, runtime, runtimeVersion: `${runtime} 1.0`, restarts: 0 }
    this.sessions.set(id, session)
    return session
  }

  #restartSession({ command: id }: ScriptedCall): NodeSession {
    const session = this.sessions.get(id)
    if (!session) throw new AirlockError('session_not_found')
    const restarted = { ...session, restarts: session.restarts + 1 }
    this.sessions.set(id, restarted)
    return restarted
  }

  /** Answers like the real one: the head at once, then the output, then the end. */
  async #step(call: ScriptedCall): Promise<unknown> {
    this.#assertThere(call.sandbox)
    if (!this.sessions.has(call.command)) throw new AirlockError('session_not_found')
    const spec = nodeStepSpec.parse(JSON.parse(call.body.toString()))
    this.steps.push(spec)
    this.#begin(spec.id)
    call.response.flushHeaders()
    return this.#output({ ...call, command: spec.id })
  }

  async #run(call: ScriptedCall): Promise<unknown> {
    this.#assertThere(call.sandbox)
    const { id } = nodeCommandSpec.parse(JSON.parse(call.body.toString()))
    const command = this.#begin(id)
    if (call.url.searchParams.get('follow') !== 'true') return command
    call.response.flushHeaders()
    return this.#output({ ...call, command: id })
  }

  #begin(id: string): NodeCommand {
    const command: NodeCommand = {
      id,
      state: 'running',
      exitCode: null,
      signal: null,
      timedOut: false,
      truncated: false,
      outputBytes: 0,
      startedAt: 1_000_000,
      endedAt: null,
    }
    this.commands.set(id, command)
    return command
  }

  #command({ sandbox, command: id }: ScriptedCall): NodeCommand {
    this.#assertThere(sandbox)
    const command = this.commands.get(id)
    if (!command) throw new AirlockError('command_not_found')
    return command
  }

  async #wait(call: ScriptedCall): Promise<unknown> {
    for (;;) {
      if (!this.#server) return 'hang-up'
      const command = this.#command(call)
      if (command.state !== 'running') return command
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  async #output(call: ScriptedCall): Promise<unknown> {
    this.#command(call)
    const from = Number(call.url.searchParams.get('from') ?? 0)
    const isRichWhole = call.url.searchParams.get('rich') === 'whole'
    let offset = 0
    for (const { stream, bytes } of this.output) {
      const skipped = stream === 'rich' && isRichWhole ? 0 : Math.max(0, from - offset)
      if (skipped < bytes.length) {
        const data = { channel: 1, stream: STREAM[stream], offset: offset + skipped, bytes: bytes.subarray(skipped) }
        call.response.write(encodeData(data))
      }
      offset += bytes.length
    }
    const ended = await this.#wait(call)
    if (ended !== 'hang-up') call.response.end(encodeMessage(ended))
    return ended
  }

  #assertThere(sandbox: string): void {
    if (!this.sandboxes.has(sandbox)) throw new AirlockError('sandbox_not_found')
  }
}

/** The answer to a followed call: it is taken with the first byte, and otherwise refused. */
class FramedReply implements Reply {
  readonly #socket: Duplex
  headersSent = false

  constructor(socket: Duplex) {
    this.#socket = socket
  }

  flushHeaders(): void {
    if (!this.headersSent) this.#socket.write(encodeMessage({ taken: true }))
    this.headersSent = true
  }

  writeHead(): this {
    return this
  }

  write(bytes: string | Buffer): void {
    this.flushHeaders()
    this.#socket.write(bytes)
  }

  end(bytes: string | Buffer): void {
    this.#socket.write(this.headersSent ? bytes : encodeMessage(JSON.parse(String(bytes))))
  }

  destroy(): void {
    this.#socket.destroy()
  }
}

function routeOf(
  parts: { sandbox: string; kind: string | undefined; command: string; verb: string | undefined },
  url: URL,
): string {
  if (parts.sandbox === '' || !url.pathname.startsWith('/sandboxes/')) return url.pathname
  const command = parts.command === '' ? '' : '/:cid'
  const verb = parts.verb === undefined ? '' : `/${parts.verb}`
  return `/sandboxes/:id${parts.kind === undefined ? '' : `/${parts.kind}`}${command}${verb}`
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
}
