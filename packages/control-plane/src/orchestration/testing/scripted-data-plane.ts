import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  AirlockError,
  type DataPlaneHealth,
  type EffectiveIsolation,
  type NodeCommand,
  nodeCommandSpec,
  type NodeSandbox,
  type NodeSession,
  nodeSessionSpec,
  nodeStepSpec,
  type NodeStepSpec,
  toAirlockError,
  verifyPermit,
} from '@airlock/contract'
import { encodeData, encodeMessage, STREAM } from '@airlock/contract/guest'

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
}

interface ScriptedCall {
  readonly sandbox: string
  readonly command: string
  readonly url: URL
  readonly body: Buffer
  readonly response: ServerResponse
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
  /** Every step that was given, in order. */
  readonly steps: NodeStepSpec[] = []
  output: { readonly stream: 'stdout' | 'stderr' | 'rich'; readonly bytes: Buffer }[] = []
  bootId = 'boot-1'
  /** What running sandboxes have used. */
  readonly cpuMs = new Map<string, number | null>()
  machine = { memoryBytes: 2 ** 40, cpus: 100 }
  readonly #scripts = new Map<string, Script>()
  readonly #waiting = new Set<() => void>()
  readonly #socket: string
  readonly #permitKey: string
  #server: Server | undefined

  constructor(options: { readonly socket: string; readonly permitKey: string }) {
    this.#socket = options.socket
    this.#permitKey = options.permitKey
  }

  health(): DataPlaneHealth {
    const { memoryBytes, cpus } = this.machine
    return { node: 'here', backend: 'scripted', bootId: this.bootId, capacity: 50, memoryBytes, cpus }
  }

  async listen(): Promise<void> {
    const server = createServer((request, response) => void this.#answer(request, response))
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.#socket, resolve))
  }

  /** As if the process had been killed: nobody answers any more. */
  async die(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    this.wake()
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
    this.calls.push(sandbox === '' ? route : route.replace(':id', sandbox))
    try {
      const body = await readAll(request)
      const call = { sandbox, command, url, body, response }
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
      'GET /usage': () => ({ usages: [...this.cpuMs].map(([id, cpuMs]) => ({ id, cpuMs })) }),
      'GET /sandboxes': () => ({ sandboxes: [...this.sandboxes.values()] }),
      'POST /sandboxes': (call) => this.#start(call),
      'DELETE /sandboxes/:id': (call) => this.#stop(call),
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
    const { sandbox: id } = verifyPermit(token, key, Date.now())
    this.sandboxes.set(id, { id, state: 'running', lostReason: null, runningCommands: 0 })
    return { id, image: 'scripted', isolation: ISOLATION }
  }

  #stop({ sandbox }: ScriptedCall): unknown {
    const existed = this.sandboxes.delete(sandbox)
    this.wake()
    return { existed, usage: existed ? { cpuMs: 7, memoryPeakBytes: 4096 } : null }
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
