import {
  AirlockError,
  type DataPlaneHealth,
  endReason,
  type EndReason,
  fileOperation,
  freezeRequest,
  findCommitRequest,
  limits,
  lookAtPathRequest,
  nodeExportRequest,
  sealQuery,
  nodeCommandSpec,
  nodeSessionSpec,
  nodeToken,
  signalRequest,
  startSandboxRequest,
} from '@airlock/contract'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'
import { type Answer, bytesOf, type Call, readJson } from './http.ts'

export type Handler = (call: Call) => Promise<Answer>

/** What does not change while we live. */
export type Health = Omit<DataPlaneHealth, 'disk' | 'damaged'>

/** `METHOD /path/:param` → handler: the table of `contract/src/host/data-plane-api.ts`, and nothing else. */
export function createRoutes(sandboxes: Sandboxes, health: Health): ReadonlyMap<string, Handler> {
  return new Map<string, Handler>([
    ...hostRoutes(sandboxes, health),
    ...doorRoutes(sandboxes),
    ['GET /metrics', async () => ({ json: await sandboxes.sampling.metrics() })],
    ['GET /sandboxes', async () => ({ json: { sandboxes: sandboxes.registry.list() } })],
    [
      'POST /sandboxes',
      async (call) => ({ json: await sandboxes.starts.start((await readJson(call, startSandboxRequest)).permit) }),
    ],
    [
      'DELETE /sandboxes/:id',
      async (call) => ({ json: await sandboxes.stops.stop(param(call, 'id'), reasonOf(call)) }),
    ],
    ...pauseRoutes(sandboxes),
    ...commandRoutes(sandboxes),
    ...sessionRoutes(sandboxes),
    ...fileRoutes(sandboxes),
    ...worktreeRoutes(sandboxes),
  ])
}

function doorRoutes(sandboxes: Sandboxes): readonly [string, Handler][] {
  return [
    [
      'PUT /sandboxes/:id/token',
      async (call) => {
        await sandboxes.registry.link(param(call, 'id')).giveToken(await readJson(call, nodeToken))
        return { json: {} }
      },
    ],
  ]
}

function hostRoutes(sandboxes: Sandboxes, health: Health): readonly [string, Handler][] {
  return [
    [
      'GET /health',
      async () => ({
        json: { ...health, disk: await sandboxes.sampling.readDisk(), damaged: [...sandboxes.registry.damaged] },
      }),
    ],
    [
      'POST /paths/look',
      async (call) => ({ json: await sandboxes.hostPaths.look(await readJson(call, lookAtPathRequest)) }),
    ],
  ]
}

function pauseRoutes(sandboxes: Sandboxes): readonly [string, Handler][] {
  return [
    [
      'POST /sandboxes/:id/pause',
      async (call) => {
        await sandboxes.pauses.pause(param(call, 'id'))
        return { json: {} }
      },
    ],
    [
      'POST /sandboxes/:id/resume',
      async (call) => {
        await sandboxes.pauses.resume(param(call, 'id'))
        return { json: {} }
      },
    ],
    [
      'POST /sandboxes/:id/limits',
      async (call) => ({ json: await sandboxes.limits.change(param(call, 'id'), await readJson(call, limits)) }),
    ],
    ['POST /freeze', async (call) => ({ json: await sandboxes.freezes.freeze(await readJson(call, freezeRequest)) })],
  ]
}

function commandRoutes(sandboxes: Sandboxes): readonly [string, Handler][] {
  const link = (call: Call) => sandboxes.registry.link(param(call, 'id'))
  const said = (call: Call) => sandboxes.registry.said(param(call, 'id'))
  return [
    ['GET /sandboxes/:id/commands', async (call) => ({ json: { commands: said(call).commands.list() } })],
    [
      'POST /sandboxes/:id/commands',
      async (call) => ({ json: await sandboxes.runs.run(param(call, 'id'), await readJson(call, nodeCommandSpec)) }),
    ],
    [
      'GET /sandboxes/:id/commands/:command',
      async (call) => ({ json: said(call).commands.get(param(call, 'command')) }),
    ],
    [
      'GET /sandboxes/:id/commands/:command/wait',
      async (call) => ({ json: await said(call).commands.wait(param(call, 'command'), call.signal) }),
    ],
    [
      'GET /sandboxes/:id/commands/:command/output',
      async (call) => ({ bytes: said(call).commands.output(param(call, 'command'), outputAsked(call)) }),
    ],
    [
      'GET /outputs/:command',
      async (call) => {
        const { vault } = sandboxes
        const id = param(call, 'command')
        const bytes = call.query.get('bytes')
        if (bytes !== null && (vault.find(id)?.bytes ?? Number(bytes)) !== Number(bytes))
          throw new AirlockError('output_not_kept', 'The whole output of the command was kept, and is damaged.')
        const kept = await vault.read(id, call.signal)
        if (!kept) throw new AirlockError('output_not_kept')
        return kept
      },
    ],
    [
      'POST /sandboxes/:id/commands/:command/signal',
      async (call) => {
        await link(call).commands.signal(param(call, 'command'), (await readJson(call, signalRequest)).signal)
        return { json: {} }
      },
    ],
    [
      'POST /sandboxes/:id/commands/:command/stdin',
      async (call) => {
        await link(call).commands.writeStdin(param(call, 'command'), bytesOf(call), call.query.get('end') === 'true')
        return { json: {} }
      },
    ],
  ]
}

function sessionRoutes(sandboxes: Sandboxes): readonly [string, Handler][] {
  const link = (call: Call) => sandboxes.registry.link(param(call, 'id'))
  const session = (call: Call) => param(call, 'session')
  return [
    [
      'POST /sandboxes/:id/sessions',
      async (call) => ({
        json: await sandboxes.runs.openSession(param(call, 'id'), await readJson(call, nodeSessionSpec)),
      }),
    ],
    ['GET /sandboxes/:id/sessions', async (call) => ({ json: { sessions: await link(call).sessions.list() } })],
    [
      'POST /sandboxes/:id/sessions/:session/interrupt',
      async (call) => {
        await link(call).sessions.interrupt(session(call))
        return { json: {} }
      },
    ],
    [
      'POST /sandboxes/:id/sessions/:session/restart',
      async (call) => ({ json: await link(call).sessions.restart(session(call)) }),
    ],
    [
      'DELETE /sandboxes/:id/sessions/:session',
      async (call) => {
        await link(call).sessions.close(session(call))
        return { json: {} }
      },
    ],
  ]
}

function fileRoutes(sandboxes: Sandboxes): readonly [string, Handler][] {
  const files = (call: Call) => sandboxes.registry.link(param(call, 'id')).files
  return [
    ['GET /sandboxes/:id/files', async (call) => files(call).read(queried(call, 'path'), call.signal)],
    [
      'PUT /sandboxes/:id/files',
      async (call) => {
        const mode = call.query.get('mode') === 'append' ? 'append' : 'truncate'
        return {
          json: { bytes: await files(call).write(queried(call, 'path'), mode, bytesOf(call), call.signal) },
        }
      },
    ],
    ['GET /sandboxes/:id/archive', async (call) => files(call).pack(queried(call, 'path'), call.signal)],
    [
      'PUT /sandboxes/:id/archive',
      async (call) => ({
        json: { bytes: await files(call).unpack(queried(call, 'path'), bytesOf(call), call.signal) },
      }),
    ],
    [
      'POST /sandboxes/:id/files',
      async (call) => ({ json: await files(call).operate(await readJson(call, fileOperation)) }),
    ],
  ]
}

function worktreeRoutes({ worktrees, registry }: Sandboxes): readonly [string, Handler][] {
  const living = (call: Call) => {
    const id = param(call, 'id')
    registry.said(id)
    return id
  }
  const sealOf = (call: Call) => sealQuery.parse({ seal: call.query.get('seal') }).seal
  return [
    [
      'POST /worktrees/commit',
      async (call) => ({ json: await worktrees.findCommit(await readJson(call, findCommitRequest)) }),
    ],
    ['POST /sandboxes/:id/worktree/seal', async (call) => ({ json: await worktrees.seal(living(call)) })],
    ['GET /sandboxes/:id/worktree', async (call) => ({ json: await worktrees.sealed(living(call), sealOf(call)) })],
    [
      'GET /sandboxes/:id/worktree/patch',
      async (call) => {
        const patch = await worktrees.patch(living(call), sealOf(call))
        return { size: patch.length, bytes: oneChunk(patch) }
      },
    ],
    [
      'POST /sandboxes/:id/worktree/export',
      async (call) => ({ json: await worktrees.export(living(call), await readJson(call, nodeExportRequest)) }),
    ],
  ]
}

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

function param(call: Call, name: string): string {
  return call.params[name] ?? ''
}

function reasonOf(call: Call): EndReason | null {
  const given = call.query.get('reason')
  const reason = endReason.safeParse(given)
  if (given !== null && !reason.success) throw new AirlockError('invalid_request', 'There is no such reason.')
  return reason.data ?? null
}

function queried(call: Call, name: string): string {
  const value = call.query.get(name)
  if (value === null) throw new AirlockError('invalid_request', `${name} is missing`)
  return value
}

function outputAsked(call: Call) {
  const from = Number(call.query.get('from') ?? 0)
  if (!Number.isSafeInteger(from) || from < 0) throw new AirlockError('invalid_request', 'from must be a whole number')
  return { from, isRichWhole: call.query.get('rich') === 'whole', signal: call.signal }
}
