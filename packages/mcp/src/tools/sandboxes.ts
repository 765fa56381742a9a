import { createSandboxBody, ROUTES, sandbox, sandboxId, session, sessionId, AirlockError } from '@airlock/contract'
import { z } from 'zod'
import { defineTool, type Tool } from '../tool.ts'

const shown = z.object(
  sandbox.pick({
    id: true,
    name: true,
    state: true,
    agent: true,
    template: true,
    labels: true,
    limits: true,
    createdAt: true,
    expiresAt: true,
    endedAt: true,
    endReason: true,
  }).shape,
)

const listQuery = ROUTES.listSandboxes.query

export const SANDBOX_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'create_sandbox',
    title: 'Create a sandbox',
    description: `${ROUTES.createSandbox.summary} It has no network. End it with terminate when it is no longer needed.`,
    routes: ['createSandbox', 'terminateSandbox'],
    input: createSandboxBody.pick({
      name: true,
      agent: true,
      template: true,
      tier: true,
      labels: true,
      env: true,
      ttlMs: true,
      limits: true,
    }),
    output: shown,
    hints: {},
    run: async (body, { routes, signal }) => {
      const structured = await routes.call('createSandbox', { body })
      // Nobody would learn its name.
      if (signal.aborted) await routes.call('terminateSandbox', { params: { id: structured.id }, body: {} })
      return { structured }
    },
  }),
  defineTool({
    name: 'list_sandboxes',
    title: 'List sandboxes',
    description: ROUTES.listSandboxes.summary,
    routes: ['listSandboxes'],
    input: z.strictObject({
      state: listQuery.shape.state,
      agent: listQuery.shape.agent,
      name: listQuery.shape.name,
      label: listQuery.shape.label,
      limit: listQuery.shape.limit,
      cursor: listQuery.shape.cursor,
    }),
    output: z.object({ items: z.array(shown), nextCursor: ROUTES.listSandboxes.response.shape.nextCursor }),
    hints: { readOnly: true, idempotent: true },
    run: async (query, { routes, signal }) => ({ structured: await routes.call('listSandboxes', { query }, signal) }),
  }),
  defineTool({
    name: 'terminate',
    title: 'End a sandbox or a session',
    description: 'End a sandbox with everything in it, or a session and the sandbox that was made for it.',
    routes: ['terminateSandbox', 'terminateSession'],
    input: z.strictObject({
      sandbox: sandboxId.optional().describe('The sandbox to end.'),
      session: sessionId.optional().describe('The session to end. Give one of the two.'),
    }),
    output: z.object({
      sandbox: sandbox.shape.id,
      session: session.shape.id.optional(),
      state: z.enum([...sandbox.shape.state.options, ...session.shape.state.options]),
      endedAt: sandbox.shape.endedAt,
    }),
    hints: { destructive: true, idempotent: true },
    run: async ({ sandbox: box, session: interpreter }, { routes }) => {
      if (interpreter !== undefined && box === undefined) {
        const {
          id,
          sandbox: of,
          state,
          endedAt,
        } = await routes.call('terminateSession', {
          params: { id: interpreter },
        })
        return { structured: { sandbox: of, session: id, state, endedAt } }
      }
      if (box === undefined || interpreter !== undefined)
        throw new AirlockError('invalid_request', 'Give either sandbox or session.')
      const { id, state, endedAt } = await routes.call('terminateSandbox', { params: { id: box }, body: {} })
      return { structured: { sandbox: id, state, endedAt } }
    },
  }),
]
