import type { DemoCall, DemoEvent } from './demo-call.ts'
import type { DemoText } from './compose-demo.ts'
import { DEMO_MODEL } from './demo-model.ts'

type DemoMessage = DemoText & DemoCall

export function messageDemo(said: DemoMessage): object {
  return {
    ...head(said),
    content: [{ type: 'text', text: said.text, citations: null }],
    ...stopOf(said),
    usage: usageOf(said.inputTokens, said.outputTokens),
  }
}

export function streamDemoMessage(said: DemoMessage): readonly DemoEvent[] {
  const none = { stop_reason: null, stop_sequence: null }
  const events = [
    { type: 'message_start', message: { ...head(said), content: [], ...none, usage: usageOf(said.inputTokens, 0) } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
    ...said.pieces.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: stopOf(said), usage: { output_tokens: said.outputTokens } },
    { type: 'message_stop' },
  ]
  return events.map((data) => ({ name: data.type, data }))
}

function head({ callId }: DemoCall): object {
  return { id: `msg_${callId}`, type: 'message', role: 'assistant', model: DEMO_MODEL }
}

function stopOf({ isCut }: DemoText): object {
  return { stop_reason: isCut ? 'max_tokens' : 'end_turn', stop_sequence: null }
}

function usageOf(input_tokens: number, output_tokens: number): object {
  return { input_tokens, output_tokens, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
}
