import {
  AirlockError,
  type OpenaiChat,
  type OpenaiChatBody,
  type OpenaiUsage,
  type Run,
  type RunEvent,
  type RunMessage,
  type SubmitRunBody,
  submitRunBody,
} from '@airlock/contract'
import type { App } from '../../app/app.ts'
import { type Handlers, json } from '../call.ts'
import { openaiError } from '../openai-error.ts'

/** The API of OpenAI over runs: each completion is a run, and each message is sent by the caller. */
export function openaiHandlers({ runs, catalog }: Pick<App, 'runs' | 'catalog'>) {
  return {
    openaiModels: async ({ caller }) => {
      const items = await catalog.list(caller)
      const data = items.map(({ name, createdAt }) => ({
        id: name,
        object: 'model' as const,
        created: createdAt === null ? 0 : seconds(createdAt),
        owned_by: 'airlock',
      }))
      return json({ object: 'list', data })
    },
    openaiChat: async ({ caller, body, signal }) => {
      const run = await runs.submit(caller, toSubmission(body))
      if (body.stream === true) {
        const events = runs.events(caller, run.id, { from: 0, follow: true, signal })
        return { kind: 'frames', frames: chunksOf(run, { events, usage: body.stream_options?.include_usage === true }) }
      }
      const { run: ended, text } = await runs.answer(caller, run.id, signal)
      return json(toCompletion(ended, text))
    },
  } satisfies Partial<Handlers>
}

function toSubmission({ model, messages }: OpenaiChatBody): SubmitRunBody {
  return submitRunBody.parse({ graph: model, messages: messages.map(toMessage) })
}

function toMessage({ role, content }: OpenaiChatBody['messages'][number]): RunMessage {
  const text = typeof content === 'string' ? content : content.map((part) => part.text).join('')
  return { role: role === 'developer' ? 'system' : role, content: text }
}

function toCompletion(run: Run, text: string): OpenaiChat {
  const message = { role: 'assistant', content: text, refusal: null } as const
  return {
    id: run.id,
    object: 'chat.completion',
    created: seconds(run.createdAt),
    model: run.graph,
    choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }],
    usage: toUsage(run),
  }
}

/** Deltas as chunks. An error becomes a frame that clients of OpenAI throw. */
async function* chunksOf(
  run: Run,
  of: { readonly events: AsyncIterable<RunEvent>; readonly usage: boolean },
): AsyncGenerator<string> {
  const head = { id: run.id, object: 'chat.completion.chunk', created: seconds(run.createdAt), model: run.graph }
  const chunk = (delta: object, finish: 'stop' | null) =>
    frame({ ...head, choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }] })
  yield chunk({ role: 'assistant', content: '' }, null)
  for await (const event of of.events) {
    if (event.event === 'text_delta') yield chunk({ content: event.delta }, null)
    if (event.event === 'assistant_final') yield chunk({}, 'stop')
    if (event.event === 'error')
      return yield frame({ error: openaiError({ code: event.code ?? 'internal', message: event.message ?? '' }) })
    if (event.event === 'done' && of.usage) yield frame({ ...head, choices: [], usage: toUsage(event.run) })
    if (event.event === 'done') return yield 'data: [DONE]\n\n'
  }
  throw new AirlockError('not_ready', 'The server is stopping. The run goes on.')
}

function toUsage({ usage }: Run): OpenaiUsage {
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  return { prompt_tokens: prompt, completion_tokens: usage.outputTokens, total_tokens: prompt + usage.outputTokens }
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function seconds(time: string): number {
  return Math.floor(Date.parse(time) / 1000)
}
