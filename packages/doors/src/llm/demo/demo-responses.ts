import type { DemoCall, DemoEvent } from './demo-call.ts'
import type { DemoText } from './compose-demo.ts'
import { DEMO_MODEL } from './demo-model.ts'

type DemoResponse = DemoText & DemoCall

export function respondDemo(said: DemoResponse): object {
  return {
    ...head(said),
    status: said.isCut ? 'incomplete' : 'completed',
    incomplete_details: said.isCut ? { reason: 'max_output_tokens' } : null,
    output: [itemOf(said)],
    usage: usageOf(said),
  }
}

export function streamDemoResponse(said: DemoResponse): readonly DemoEvent[] {
  const begun = { ...head(said), status: 'in_progress', incomplete_details: null, output: [], usage: null }
  const item = itemOf(said)
  const part = partOf(said.text)
  const place = { item_id: item.id, output_index: 0, content_index: 0 }
  const events = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...place, part: partOf('') },
    ...said.pieces.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...place, text: said.text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: said.isCut ? 'response.incomplete' : 'response.completed', response: respondDemo(said) },
  ]
  return events.map((event, sequence_number) => ({ name: event.type, data: { ...event, sequence_number } }))
}

function head({ callId, createdAt }: DemoCall): object {
  return {
    id: `resp_${callId}`,
    object: 'response',
    created_at: createdAt,
    model: DEMO_MODEL,
    error: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
  }
}

function itemOf({ callId, text, isCut }: DemoResponse) {
  const status = isCut ? 'incomplete' : 'completed'
  return { id: `msg_${callId}`, type: 'message', role: 'assistant', status, content: [partOf(text)] }
}

function partOf(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function usageOf({ inputTokens, outputTokens }: DemoText): object {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  }
}
