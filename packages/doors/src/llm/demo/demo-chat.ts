import type { DemoCall, DemoEvent } from './demo-call.ts'
import type { DemoText } from './compose-demo.ts'
import { DEMO_MODEL } from './demo-model.ts'

type DemoChat = DemoText & DemoCall & { readonly choices: number }

export function completeDemo(said: DemoChat): object {
  const message = { role: 'assistant', content: said.text, refusal: null, annotations: [] }
  const choices = eachChoice(said, { message, logprobs: null, finish_reason: finishOf(said) })
  return { ...head(said, 'chat.completion'), choices, usage: usageOf(said) }
}

export function streamDemoChat(said: DemoChat): readonly DemoEvent[] {
  const chunk = (delta: object, finish_reason: string | null = null): DemoEvent => ({
    data: { ...head(said, 'chat.completion.chunk'), choices: eachChoice(said, { delta, finish_reason }), usage: null },
  })
  return [
    chunk({ role: 'assistant', content: '' }),
    ...said.pieces.map((content) => chunk({ content })),
    chunk({}, finishOf(said)),
    { data: { ...head(said, 'chat.completion.chunk'), choices: [], usage: usageOf(said) } },
    { data: '[DONE]' },
  ]
}

function head({ callId, createdAt }: DemoCall, object: string): object {
  return { id: `chatcmpl-${callId}`, object, created: createdAt, model: DEMO_MODEL }
}

function eachChoice({ choices }: DemoChat, choice: object): readonly object[] {
  return Array.from({ length: choices }, (_, index) => ({ index, ...choice }))
}

function finishOf({ isCut }: DemoText): string {
  return isCut ? 'length' : 'stop'
}

function usageOf({ inputTokens, outputTokens }: DemoText): object {
  const total_tokens = inputTokens + outputTokens
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens }
}
