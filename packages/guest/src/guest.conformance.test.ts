import { randomBytes } from 'node:crypto'
import { type ConformanceGuest, type ConformanceResult, describeGuest } from './session/testing/conformance.ts'
import { TestGuest } from './session/testing/test-guest.ts'
import type { FinishedStep, TestHost } from './session/testing/test-host.ts'
import type { StepAnswer } from './transport/http/session-agent.ts'
import { type AgentReply, TestAgent } from './transport/http/testing/test-agent.ts'

describeGuest('frames', startFrames)
describeGuest('HTTP', startHttp)

async function startFrames(): Promise<ConformanceGuest> {
  const guest = await TestGuest.start()
  return {
    work: guest.work,
    open: async (runtime) => {
      const session = await guest.open(runtime)
      const known = new Map<string, ReturnType<TestHost['spec']>>()
      return {
        run: async (code, { stepId, ...options } = {}) => {
          const spec = known.get(stepId ?? '') ?? guest.host.spec(session.info.id, code, options)
          if (stepId !== undefined) known.set(stepId, spec)
          await guest.host.start(spec)
          return fromFrames(await guest.host.finish(spec.channel))
        },
        interrupt: () => session.interrupt(),
        restart: async () => {
          await session.restart()
        },
        close: () => session.close(),
      }
    },
    stop: () => guest.stop(),
  }
}

function fromFrames(step: FinishedStep): ConformanceResult {
  const errors = step.rich.filter(isError)
  return {
    status: step.exitCode === 0 ? 'completed' : 'failed',
    stdout: step.stdout,
    stderr: step.stderr,
    outputs: step.rich.filter((line) => !isError(line)),
    error: errors.at(-1)?.error,
    restarted: step.restarted,
    truncated: step.truncated,
  }
}

async function startHttp(): Promise<ConformanceGuest> {
  const agent = await TestAgent.start()
  return {
    work: agent.work,
    open: async (runtime) => {
      const sessionId = randomBytes(8).toString('hex')
      const token = randomBytes(16).toString('hex')
      const post = async (path: string, body?: unknown) => throwOnFault(await agent.call('POST', path, { token, body }))
      await post('/v1/sessions', { sessionId, runtime, workspaceDir: agent.work })
      const verb = async (name: string) => {
        await post(`/v1/sessions/${sessionId}/${name}`)
      }
      return {
        run: async (code, { stepId = randomBytes(8).toString('hex'), ...options } = {}) =>
          fromHttp(await post('/v1/steps', { sessionId, stepId, code, ...options })),
        interrupt: () => verb('interrupt'),
        restart: () => verb('restart'),
        close: () => verb('terminate'),
      }
    },
    stop: () => agent.stop(),
  }
}

function throwOnFault({ status, body }: AgentReply): unknown {
  if (status !== 200) throw new TypeError(`${status}: ${JSON.stringify(body)}`)
  return body
}

function fromHttp(body: unknown): ConformanceResult {
  const { status, stdout, stderr, outputs, error, restarted, truncated } = body as StepAnswer
  return { status, stdout, stderr, outputs, error: error as ConformanceResult['error'], restarted, truncated }
}

function isError(line: unknown): line is { readonly kind: 'error'; readonly error: ConformanceResult['error'] } {
  return typeof line === 'object' && line !== null && 'kind' in line && line.kind === 'error'
}
