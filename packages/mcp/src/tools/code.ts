import {
  AirlockError,
  createSandboxBody,
  createSessionBody,
  ROUTES,
  type Runtime,
  runStepBody,
  SESSION_TEMPLATES,
  session,
  sessionId,
  type Step,
} from '@airlock/contract'
import { deadline } from '@airlock/std'
import { z } from 'zod'
import { follow, STOP_MS } from '../follow.ts'
import type { RouteRequest, Routes } from '../routes.ts'
import { answerStep, Outputs, stepAnswer } from '../step-answer.ts'
import { TextOutput } from '../text-output.ts'
import { defineTool, type Tool, type ToolAnswer, type ToolCall } from '../tool.ts'

/** How long the end of what was made for one call may take. */
const END_MS = 15_000

const body = createSessionBody.shape
const wanted = createSandboxBody.shape
/** Of the sandbox that is made where none is given. */
const newSandbox = {
  agent: wanted.agent,
  template: wanted.template
    .removeDefault()
    .optional()
    .describe('What the new sandbox starts from; "data" for python, with numpy, pandas and matplotlib, when absent.'),
  tier: wanted.tier
    .removeDefault()
    .optional()
    .describe('How the new sandbox is isolated, at least; a template or a policy may ask for more.'),
}
type NewSandbox = z.output<z.ZodObject<typeof newSandbox>>
type StepAnswer = ToolAnswer<z.input<typeof stepAnswer>>

export const CODE_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'run_code',
    title: 'Run code',
    description:
      'Run Python, JavaScript or TypeScript (node), or bash, and answer what it printed, the value of its last expression, and ' +
      'its pictures. Without session and sandbox it runs in a new sandbox without a network that is gone afterwards.',
    routes: ['createSession', 'getSession', 'runStep', 'interruptSession', 'terminateSession'],
    input: z.strictObject({
      language: body.runtime,
      code: runStepBody.shape.code,
      session: sessionId.optional().describe('A session of that language, whose state the code sees and changes.'),
      sandbox: body.sandbox.describe('A living sandbox, whose files the code sees and changes.'),
      ...newSandbox,
      stdin: runStepBody.shape.stdin,
      timeoutMs: runStepBody.shape.timeoutMs,
    }),
    output: stepAnswer,
    hints: { destructive: true },
    run: async ({ language, session: existing, sandbox, agent, template, tier, ...step }, call) => {
      if (existing === undefined) return runOnce({ language, sandbox, agent, template, tier }, step, call)
      if ([sandbox, agent, template, tier].some((given) => given !== undefined))
        throw new AirlockError('invalid_request', 'A session has its sandbox: give it alone.')
      const { runtime } = await call.routes.call('getSession', { params: { id: existing } }, call.signal)
      if (runtime !== language)
        throw new AirlockError('invalid_request', `The session runs ${runtime}, not ${language}.`)
      return runStep({ params: { id: existing }, body: step }, call)
    },
  }),
  defineTool({
    name: 'create_session',
    title: 'Create a session',
    description: `${ROUTES.createSession.summary} Run code in it with run_step; it ends by itself when unused.`,
    routes: ['createSession', 'terminateSession'],
    input: z.strictObject({
      runtime: body.runtime,
      sandbox: body.sandbox,
      ...newSandbox,
      env: body.env,
      cwd: body.cwd,
      labels: body.labels,
      ttlMs: body.ttlMs,
    }),
    output: z.object(
      session.pick({
        id: true,
        sandbox: true,
        ownsSandbox: true,
        runtime: true,
        runtimeVersion: true,
        state: true,
        labels: true,
        createdAt: true,
        expiresAt: true,
      }).shape,
    ),
    hints: {},
    run: async ({ agent, template, tier, ...rest }, { routes, signal, progress }) => {
      progress.say('starting an interpreter')
      const create = createFor(rest.runtime, { agent, template, tier })
      const structured = await routes.call('createSession', { body: { ...rest, create } })
      // Nobody would learn its name.
      if (signal.aborted) await routes.call('terminateSession', { params: { id: structured.id } })
      return { structured }
    },
  }),
  defineTool({
    name: 'run_step',
    title: 'Run code in a session',
    description:
      'Run code in a session, which remembers what ran before. A stepId of your own makes it safe to ask again: the code ' +
      'runs at most once.',
    routes: ['runStep', 'interruptSession'],
    input: z.strictObject({
      session: sessionId,
      code: runStepBody.shape.code,
      stepId: runStepBody.shape.stepId,
      env: runStepBody.shape.env,
      stdin: runStepBody.shape.stdin,
      timeoutMs: runStepBody.shape.timeoutMs,
    }),
    output: stepAnswer,
    hints: { destructive: true },
    run: async ({ session: id, ...step }, call) => runStep({ params: { id }, body: step }, call),
  }),
]

interface Place extends NewSandbox {
  readonly language: Runtime
  readonly sandbox?: string | undefined
}

/** In a session of its own, which ends however the step ends, and with it the sandbox that was made for it. */
async function runOnce(
  { language, sandbox, ...asked }: Place,
  step: RouteRequest<'runStep'>['body'],
  call: ToolCall,
): Promise<StepAnswer> {
  const { routes, progress, signal } = call
  signal.throwIfAborted()
  progress.say(sandbox === undefined ? 'starting a sandbox' : 'starting an interpreter')
  // Not aborted: what has begun must be known, to be ended.
  const wanted = createFor(language, asked)
  const create = sandbox === undefined ? { template: SESSION_TEMPLATES[language], ...wanted, ephemeral: true } : wanted
  const { id } = await routes.call('createSession', { body: { runtime: language, sandbox, create } })
  try {
    return await runStep({ params: { id }, body: step }, call)
  } finally {
    // One that cannot be ended now ends by its time to live; what the code did counts.
    await routes.call('terminateSession', { params: { id } }, deadline(END_MS)).catch(() => undefined)
  }
}

/** The new sandbox of a session; undefined where nothing was asked of it, and the server decides. */
function createFor(
  runtime: Runtime,
  { agent, template, tier }: NewSandbox,
): RouteRequest<'createSession'>['body']['create'] {
  if (agent === undefined && template === undefined && tier === undefined) return undefined
  return { agent, template: template ?? SESSION_TEMPLATES[runtime], tier }
}

/** Runs it to its end; when the caller calls it off it is interrupted, and the session lives on. */
async function runStep(request: RouteRequest<'runStep'>, call: ToolCall): Promise<StepAnswer> {
  const { routes, progress, signal } = call
  const said = { text: new TextOutput(), outputs: new Outputs() }
  const known: { started?: Step; ended?: Step } = {}
  progress.say('running')
  await follow({
    signal,
    open: (listening) => routes.events('runStep', request, listening),
    onEvent: (event) => {
      if (event.event === 'started') known.started = event.step
      else if (event.event === 'ended') known.ended = event.step
      else if (event.event === 'rich') said.outputs.push(event.output)
      else if (event.event === 'output') {
        said.text.push(event)
        progress.say(event.text ?? '')
      }
    },
    stop: async () => known.started && interrupt(known.started, routes),
  })
  if (!known.ended) throw new AirlockError('internal', 'The stream ended before the step.')
  return answerStep(known.ended, said)
}

/** Only this step: before its turn it is taken back, and another one that runs goes on. */
async function interrupt({ id: step, session: id }: Step, routes: Routes): Promise<void> {
  await routes.call('interruptSession', { params: { id }, query: { step } }, deadline(STOP_MS))
}
